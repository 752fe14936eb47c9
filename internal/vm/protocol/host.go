package protocol

import (
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"example.com/reframe/internal/machine"
)

// Host serves the target's state at the time of the frames.
type Host struct {
	Memory *Overlay
	Symbol func(name string) (at machine.Addr, size uint64, ok bool)
	// Progress is called for each served request, unless it is nil.
	Progress func(requests int)
}

// These bound a request, and a run.
const (
	maxRead    = 4 << 20  // bytes
	maxRanges  = 64 << 10 // of one request
	maxNames   = 4096     // symbols in one request
	maxOutput  = 16 << 20
	maxMessage = 1 << 10 // characters of foreign text in an error
)

// serving is the state of one resume.
type serving struct {
	host     *Host
	progress func(int)
	requests int
	last     int64 // id of the interpreter's last request
	output   strings.Builder
}

// request serves a request of the interpreter. The answer is nil for a notification. An error ends the interpreter.
func (c *Child) request(m *message, serve *serving) (*message, error) {
	if serve == nil {
		return nil, c.broken(named(m), fmt.Errorf("requests are not allowed during %s", c.asked))
	}
	serve.requests++
	if serve.progress != nil {
		serve.progress(serve.requests)
	}
	if m.ID == nil {
		if m.Method != "output" {
			return nil, nil // JSON-RPC 2.0, section 4.1: unknown notifications get no answer
		}
		return nil, c.broken(named(m), serve.print(m.Params))
	}
	id, err := strconv.ParseInt(string(m.ID), 10, 64)
	if err == nil && id <= serve.last {
		err = fmt.Errorf("the id of the previous request was %d, and ids must increase", serve.last)
	} else if err != nil {
		err = fmt.Errorf("its id is %.40q; expected a number", m.ID)
	}
	if err != nil {
		return nil, c.broken(named(m), err)
	}
	serve.last = id
	answer := &message{Version: "2.0", ID: m.ID}
	result, failed := serve.do(m.Method, m.Params)
	if failed != nil {
		answer.Error = failed
		return answer, nil
	}
	answer.Result, err = json.Marshal(result)
	return answer, err
}

// do serves one request by its method.
func (s *serving) do(method string, params json.RawMessage) (any, *Failure) {
	wrong := func(err error) *Failure { return &Failure{codeParams, err.Error()} }
	switch method {
	case "memory.read":
		result, err := s.read(params)
		if err != nil {
			return nil, wrong(err)
		}
		return result, nil
	case "memory.write":
		if err := s.write(params); err != nil {
			return nil, wrong(err)
		}
		return struct{}{}, nil
	case "memory.allocate":
		var p struct{ Size, Align uint64 }
		if err := json.Unmarshal(params, &p); err != nil {
			return nil, wrong(err)
		}
		at, err := s.host.Memory.Allocate(p.Size, p.Align)
		if err != nil {
			return nil, &Failure{codeFailed, err.Error()}
		}
		return map[string]Word{"at": WordOf(at)}, nil
	case "symbol":
		result, err := s.symbols(params)
		if err != nil {
			return nil, wrong(err)
		}
		return result, nil
	case "output":
		if err := s.print(params); err != nil {
			return nil, wrong(err)
		}
		return struct{}{}, nil
	}
	return nil, &Failure{codeMethod, fmt.Sprintf("reframe has no method %.40q", method)}
}

func ranges(params json.RawMessage) ([]span, error) {
	var p struct{ Ranges []span }
	if err := json.Unmarshal(params, &p); err != nil {
		return nil, err
	}
	if len(p.Ranges) > maxRanges {
		return nil, fmt.Errorf("%d ranges; the limit of one request is %d", len(p.Ranges), maxRanges)
	}
	return p.Ranges, nil
}

// part is the result for one range of memory.
type part struct {
	Data  *string `json:"data,omitempty"`
	Error string  `json:"error,omitempty"`
}

func (s *serving) read(params json.RawMessage) ([]part, error) {
	list, err := ranges(params)
	if err != nil {
		return nil, err
	}
	all := 0
	for i := range list {
		size := list[i].Size
		if size < 0 || size > maxRead {
			return nil, fmt.Errorf("range %d has %d bytes: must be from 0 to %d", i, size, maxRead)
		}
		if all += size; all > maxRead {
			return nil, fmt.Errorf("the ranges have over %d MiB together", maxRead>>20)
		}
	}
	out := make([]part, len(list))
	for i := range list {
		at, _, err := list[i].read()
		if err != nil {
			return nil, fmt.Errorf("range %d: %w", i, err)
		}
		data := make([]byte, list[i].Size)
		if at+machine.Addr(len(data)) < at {
			out[i].Error = fmt.Sprintf("%v and %d bytes end outside of the address space", at, len(data))
		} else if err := s.host.Memory.ReadMemory(data, at); err != nil {
			out[i].Error = fmt.Sprintf("%.*s", maxMessage, err)
		} else {
			text := hex.EncodeToString(data)
			out[i].Data = &text
		}
	}
	return out, nil
}

func (s *serving) write(params json.RawMessage) error {
	list, err := ranges(params)
	if err != nil {
		return err
	}
	type piece struct {
		at   machine.Addr
		data []byte
	}
	pieces := make([]piece, len(list))
	for i := range list {
		at, data, err := list[i].read()
		if err == nil && list[i].Data == nil {
			err = errors.New("no data")
		}
		if err == nil {
			err = s.host.Memory.Writable(machine.Range{Start: at, End: at + machine.Addr(len(data))})
		}
		if err != nil {
			return fmt.Errorf("range %d: %w; nothing is written", i, err)
		}
		pieces[i] = piece{at, data}
	}
	for i, p := range pieces {
		if err := s.host.Memory.Write(p.data, p.at); err != nil {
			return fmt.Errorf("range %d: %w", i, err)
		}
	}
	return nil
}

// found is the location of a symbol.
type found struct {
	At   Word   `json:"at"`
	Size uint64 `json:"size,omitempty"`
}

func (s *serving) symbols(params json.RawMessage) ([]*found, error) {
	var p struct{ Names []string }
	if err := json.Unmarshal(params, &p); err != nil {
		return nil, err
	}
	if len(p.Names) > maxNames {
		return nil, fmt.Errorf("%d names; the limit of one request is %d", len(p.Names), maxNames)
	}
	out := make([]*found, len(p.Names))
	for i, name := range p.Names {
		if at, size, ok := s.host.Symbol(name); ok {
			out[i] = &found{WordOf(at), size}
		}
	}
	return out, nil
}

func (s *serving) print(params json.RawMessage) error {
	var p struct{ Text *string }
	if err := json.Unmarshal(params, &p); err != nil {
		return err
	}
	if p.Text == nil {
		return errors.New("it has no text")
	}
	if s.output.Len()+len(*p.Text) > maxOutput {
		return fmt.Errorf("over %d MiB of output", maxOutput>>20)
	}
	s.output.WriteString(*p.Text)
	return nil
}
