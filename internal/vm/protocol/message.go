package protocol

import (
	"cmp"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strconv"

	"example.com/reframe/internal/machine"
)

// Version is the version of the protocol that both sides must use.
const Version = "reframe.vm/1"

// These are error codes of JSON-RPC 2.0, section 5.1, including the one for internal errors.
const (
	codeMethod = -32601
	codeParams = -32602
	codeFailed = -32000
)

// message is any message: a request has a Method, an answer has a Result or an Error.
type message struct {
	Version string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id,omitempty"`
	Method  string          `json:"method,omitempty"`
	Params  json.RawMessage `json:"params,omitempty"`
	Result  json.RawMessage `json:"result,omitempty"`
	Error   *Failure        `json:"error,omitempty"`
}

// Failure is the error member of an answer.
type Failure struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
}

// Error implements error.
func (f *Failure) Error() string { return fmt.Sprintf("%s (error %d)", f.Message, f.Code) }

// Hello describes the target in initialize.
type Hello struct {
	Protocol string `json:"protocol"`
	Arch     string `json:"arch"`
	Order    string `json:"order"` // little, big
	Pointer  int    `json:"pointer"`
	Target   string `json:"target"` // process, core
}

// About is the answer to initialize.
type About struct {
	Protocol string `json:"protocol"`
	Name     string `json:"name"`
	Step     bool   `json:"step"` // the interpreter supports stop in a resume
}

// Value is a value of a frame or an object.
type Value struct {
	Index  *int64 `json:"index,omitempty"` // number of a local or of an operand stack entry
	Name   string `json:"name,omitempty"`
	Type   string `json:"type,omitempty"`
	Text   string `json:"value,omitempty"`
	Bits   Word   `json:"bits,omitempty"`  // the bits of the decoded value
	Words  []Word `json:"words,omitempty"` // the words of a value of several words, before they were decoded
	Object *int64 `json:"object,omitempty"`
	Dead   bool   `json:"dead,omitempty"`
}

// Frame is one activation of a method.
type Frame struct {
	Method   string           `json:"method,omitempty"`
	Bits     Word             `json:"method_bits,omitempty"` // the method's bits in the record
	Position *int64           `json:"position,omitempty"`
	Resume   string           `json:"resume"`
	Text     string           `json:"text,omitempty"` // the instruction at Position, in a frame from an interpreter
	Locals   []Value          `json:"locals"`
	Stack    []Value          `json:"stack"`
	Monitors []Monitor        `json:"monitors,omitempty"`
	Extra    map[string]Value `json:"extra,omitempty"`
}

// Monitor is a lock that a frame holds.
type Monitor struct {
	Owner      Value `json:"owner"`
	Eliminated bool  `json:"eliminated,omitempty"`
}

// Object is an object that does not exist in the process.
type Object struct {
	ID     int64   `json:"id"`
	Class  string  `json:"class,omitempty"`
	Bits   Word    `json:"class_bits,omitempty"` // the class's bits in the record
	Fields []Field `json:"fields"`
}

// Field is a field of an object, or an element of an array.
type Field struct {
	At int64 `json:"at"`
	Value
}

// Resume is the request to resume frames.
type Resume struct {
	Frames   []Frame  `json:"frames"` // innermost first
	Objects  []Object `json:"objects,omitempty"`
	Returned *Native  `json:"returned,omitempty"` // result of the call for which the first frame waits; nil if it does not wait, or the call returned nothing
	Steps    uint64   `json:"steps,omitempty"`
	Tail     int      `json:"tail,omitempty"`
	Stop     *Stop    `json:"stop,omitempty"` // only for an interpreter with [About].Step
}

// Native is a value in the form in which compiled code returns it.
type Native struct {
	Type string `json:"type"`
	Bits Word   `json:"bits"`
	Text string `json:"text,omitempty"` // the value as text for people
}

// Said returns the value's text for people, or else its bits.
func (n *Native) Said() string { return cmp.Or(n.Text, string(n.Bits)) }

// Answer is the result of a resume.
type Answer struct {
	Returned    *Native  // nil if the method returns nothing, or did not return
	Returns     bool     // the method returned, or an exception left it and compiled code then returns
	Threw       *Thrown  // nil if no exception left it
	Unsupported string   // the reason why the interpreter cannot resume the frames; "" if it can
	Malformed   string   // the reason why the frames are impossible; "" if they are possible
	Stopped     *Stopped // the state in which the interpreter stopped; nil if it ran to the end
	Locked      *bool    // the interpreter took a lock, or holds one that was not held before; nil if it does not report this
	Steps       uint64   // executed instructions of the VM
	Tail        []string // the last of these instructions, oldest first

	Requests  int    // number of requests; each is a round trip, and a batch counts as one
	Output    string // the output that the program would have printed
	Allocated uint64 // bytes
}

// Thrown is an exception that left the outermost frame.
type Thrown struct {
	Text string `json:"text"`
}

// answer is the JSON of an [Answer].
type answer struct {
	Returned    json.RawMessage `json:"returned"`
	Threw       *Thrown         `json:"threw"`
	Unsupported *string         `json:"unsupported"`
	Malformed   *string         `json:"malformed"`
	Stopped     *Stopped        `json:"stopped"`
	Locked      *bool           `json:"locked"`
	Steps       uint64          `json:"steps"`
	Tail        []string        `json:"tail"`
}

// read converts and checks the answer to a resume.
func (w *answer) read() (*Answer, error) {
	a := &Answer{Threw: w.Threw, Stopped: w.Stopped, Steps: w.Steps, Tail: w.Tail, Returns: w.Returned != nil, Locked: w.Locked}
	for _, refused := range []struct {
		name string
		why  *string
		to   *string
	}{{"unsupported", w.Unsupported, &a.Unsupported}, {"malformed", w.Malformed, &a.Malformed}} {
		switch {
		case refused.why == nil:
		case a.Returns || a.Threw != nil || a.Stopped != nil:
			return nil, fmt.Errorf("it has both %s and an outcome", refused.name)
		case *refused.why == "":
			return nil, fmt.Errorf("%s has no reason", refused.name)
		default:
			*refused.to = *refused.why
			return a, nil
		}
	}
	switch {
	case a.Stopped != nil && (a.Returns || a.Threw != nil):
		return nil, fmt.Errorf("it has both stopped and another outcome")
	case a.Stopped != nil:
		return a, a.Stopped.check()
	case !a.Returns && a.Threw == nil:
		return nil, fmt.Errorf("it has none of returned, threw, unsupported, malformed")
	case !a.Returns || string(w.Returned) == "null":
		return a, nil
	}
	a.Returned = &Native{}
	if err := json.Unmarshal(w.Returned, a.Returned); err != nil {
		return nil, fmt.Errorf("returned: %w", err)
	}
	if a.Returned.Type == "" || a.Returned.Bits == "" {
		return nil, fmt.Errorf("returned has no type, or no bits")
	}
	_, err := a.Returned.Bits.Uint()
	if err != nil {
		err = fmt.Errorf("returned: %w", err)
	}
	return a, err
}

// Word is a hexadecimal number such as "0x2a". It has at most 64 bits, except for values of wider types.
type Word string

// WordOf formats a number.
func WordOf[T ~uint64](v T) Word { return Word("0x" + strconv.FormatUint(uint64(v), 16)) }

// Uint parses the number.
func (w Word) Uint() (uint64, error) {
	if len(w) < 3 || w[:2] != "0x" {
		return 0, fmt.Errorf("%.40q is not a number of the form \"0x2a\"", string(w))
	}
	v, err := strconv.ParseUint(string(w[2:]), 16, 64)
	if err != nil {
		return 0, fmt.Errorf("%.40q does not fit in 64 bits", string(w))
	}
	return v, nil
}

// span is a range of memory to read, or to write data to.
type span struct {
	At   Word    `json:"at"`
	Size int     `json:"size"`
	Data *string `json:"data"`
}

func (s *span) read() (at machine.Addr, data []byte, err error) {
	v, err := s.At.Uint()
	if err == nil && s.Data != nil {
		data, err = hex.DecodeString(*s.Data)
	}
	return machine.Addr(v), data, err
}
