package vmlayout

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"example.com/reframe/internal/machine"
)

// Serve runs layouts in their own process, which [Start] or a [Group] starts. It bounds the memory of the process permanently, and returns after the last request.
func Serve(in io.Reader, out io.Writer) error {
	if err := boundMemory(); err != nil {
		return err
	}
	return serve(in, out)
}

func serve(in io.Reader, out io.Writer) error {
	s := &served{layouts: map[int]*Layout{}, numbers: map[any]int{}, in: json.NewDecoder(bufio.NewReader(in)), out: json.NewEncoder(out)}
	for {
		var r request
		if err := s.in.Decode(&r); err == io.EOF {
			return nil
		} else if err != nil {
			return err
		}
		a := s.answer(&r)
		if l := s.layouts[r.Layout]; l != nil {
			a.Prints = l.prints.sent()
		}
		if err := s.out.Encode(a); err != nil {
			return err
		}
	}
}

type served struct {
	in      *json.Decoder
	out     *json.Encoder
	layouts map[int]*Layout
	codecs  []Codec     // the codecs of all layouts in this process
	numbers map[any]int // indices of codecs by codecKey
	source  Source
}

// codecKey returns the same key for equal codecs. The function frames may run several times for a record, and creates its codecs each time.
func codecKey(c Codec) any {
	if w, ok := c.(*written); ok {
		return *w
	}
	return fmt.Sprintf("%T %+v", c, c)
}

func (s *served) answer(r *request) *response {
	failed := func(err error) *response {
		var e *Error
		if errors.As(err, &e) {
			return &response{Error: e.Err.Error(), At: e.At, Via: e.Via, Needs: e.NeedsTarget}
		}
		return &response{Error: err.Error()}
	}
	switch l := s.layouts[r.Layout]; {
	case r.Text != nil:
		l, err := Parse(r.Name, r.Text)
		if err != nil {
			return failed(err)
		}
		s.layouts[r.Layout] = l
		s.source = Source{Static: asked{s}, Order: binary.LittleEndian}
		return &response{At: l.Defined(), Runs: l.interpreterFunctions, Has: map[string]bool{"frames": l.frames != nil, "object": l.object != nil, "method": l.methodName != nil, "class": l.className != nil, "info": l.info != nil, "reference": l.reference != nil, "local": l.localName != nil, "field": l.fieldName != nil, "text": l.text != nil}}
	case l == nil:
		return failed(errors.New("no layout"))
	case r.Site != nil:
		site := &Site{Function: r.Site.Function, Record: r.Site.Record, Kind: r.Site.Kind, Moment: r.Site.Moment, Operands: operands(r.Site.Operands), Args: operands(r.Site.Args), Native: r.Site.Native}
		if site.Native != nil && l.interpreterFrames == nil {
			return failed(errors.New("the layout has no interpreter_frames"))
		}
		if r.Site.Target {
			site.Target = &Target{Memory: asked{s}, find: asked{s}.symbol, Order: s.source.Order}
		}
		shape, err := l.Frames(site)
		if err != nil || shape == nil {
			if err == nil {
				return &response{}
			}
			return failed(err)
		}
		shape.tokens(func(v *Value) {
			if v.Codec == nil {
				return
			}
			key := codecKey(v.Codec)
			if s.numbers[key] == 0 {
				s.codecs = append(s.codecs, v.Codec)
				s.numbers[key] = len(s.codecs)
			}
			v.CodecNumber = s.numbers[key]
		})
		return &response{Shape: shape}
	case r.Of == "info":
		info, err := l.infoOf(&s.source, r.Bits, r.Place)
		if err != nil {
			return failed(err)
		}
		return &response{Info: info}
	case r.Of == "object" && l.object != nil:
		o, err := l.Object(&Source{Static: asked{s}, Order: s.source.Order, symbol: asked{s}.symbol}, r.Bits)
		if err != nil {
			return failed(err)
		}
		return &response{Object: o}
	case r.Of == "reference":
		at, ok := l.Reference(r.Bits)
		if !ok {
			return &response{}
		}
		return &response{Bits: uint64(at)}
	case r.Subject != nil:
		text, err := l.describe(r.Of, &s.source, *r.Subject)
		if err != nil {
			return failed(err)
		}
		return &response{Text: text}
	case r.Of != "":
		name, err := l.nameOf(r.Of, &s.source, r.Bits)
		if err != nil {
			return failed(err)
		}
		return &response{Text: name}
	case r.Decode > 0 && r.Decode <= len(s.codecs):
		v, err := decode(s.codecs[r.Decode-1], s.exit(r), r.Words)
		if err != nil {
			return failed(err)
		}
		return &response{Typed: &v}
	case r.Encode != nil && r.Codec > 0 && r.Codec <= len(s.codecs):
		words, err := encode(s.codecs[r.Codec-1], s.exit(r), *r.Encode, r.Words)
		if err != nil {
			return failed(err)
		}
		return &response{Words: words}
	}
	return failed(fmt.Errorf("an unknown request"))
}

// exit returns the source that a codec may read from, with the time that is left.
func (s *served) exit(r *request) *Source {
	out := &Source{Order: s.source.Order, codecs: &spent{time: maxCodecTime - time.Duration(r.Left)}}
	if r.Memory {
		out.Memory, out.Static = asked{s}, asked{s}
	}
	return out
}

// asked is the target's memory in a process of layouts: each read is a request to the process that started it.
type asked struct{ s *served }

func (a asked) ask(r *wireRead) (m wireMemory, err error) {
	if err := a.s.out.Encode(response{Read: r}); err != nil {
		return m, err
	}
	return m, a.s.in.Decode(&m)
}

func (a asked) symbol(name string) (machine.Addr, bool, error) {
	m, err := a.ask(&wireRead{Symbol: name})
	if err == nil && m.Error != "" {
		err = errors.New(m.Error)
	}
	return machine.Addr(m.At), m.At != 0, err
}

func (a asked) ReadMemory(buf []byte, addr machine.Addr) error {
	m, err := a.ask(&wireRead{Addr: uint64(addr), Size: len(buf)})
	if err != nil {
		return err
	}
	if m.Needs {
		return errNoTarget
	}
	if m.Error != "" {
		return errors.New(m.Error)
	}
	if len(m.Data) != len(buf) {
		return fmt.Errorf("%d bytes of %d", len(m.Data), len(buf))
	}
	copy(buf, m.Data)
	return nil
}
