package vmlayout

import (
	"errors"
	"fmt"
	"math/big"
	"slices"

	"example.com/reframe/deopt/frame"
)

// These are the messages between reframe and the process that runs a target's layout: one JSON object per line.

type request struct {
	Layout  int       // number of the layout in its process, from 0
	Name    string    `json:",omitempty"` // name of the layout, with its text: the first request
	Text    []byte    `json:",omitempty"`
	Site    *wireSite `json:",omitempty"`
	Of      string    `json:",omitempty"` // method, class, info, reference or object, with the next two
	Bits    uint64    `json:",omitempty"`
	Place   int64     `json:",omitempty"`
	Subject *subject  `json:",omitempty"` // with Of: the local, the field or the value to describe
	Decode  int       `json:",omitempty"` // number of a codec, from 1, with Bits
	Encode  *Typed    `json:",omitempty"` // the value to encode, by the codec with the number Codec
	Codec   int       `json:",omitempty"`
	Words   []uint64  `json:",omitempty"` // in place of Bits, for a codec of several words
	Memory  bool      `json:",omitempty"` // the codec may read memory
	Left    int64     `json:",omitempty"` // time that the codec may take, in nanoseconds
}

type response struct {
	Has    map[string]bool   `json:",omitempty"`
	Runs   []string          `json:",omitempty"` // interpreter_functions
	Shape  *Shape            `json:",omitempty"`
	Object *HeapObject       `json:",omitempty"`
	Text   string            `json:",omitempty"`
	Info   map[string]string `json:",omitempty"`
	Typed  *Typed            `json:",omitempty"`
	Bits   uint64            `json:",omitempty"`
	Words  []uint64          `json:",omitempty"`
	At     string            `json:",omitempty"` // position of the error in the layout
	Via    string            `json:",omitempty"` // positions of the calls that led to it
	Error  string            `json:",omitempty"`
	Prints []string          `json:",omitempty"` // printed since the last response
	Needs  bool              `json:",omitempty"` // the layout failed because the site has no target
	Read   *wireRead         `json:",omitempty"` // not an answer: the process first needs this memory
}

// wireRead is a request for memory, or for the address of a symbol.
type wireRead struct {
	Addr   uint64
	Size   int
	Symbol string `json:",omitempty"`
}

type wireMemory struct {
	Data  []byte `json:",omitempty"`
	At    uint64 `json:",omitempty"` // address of the symbol; 0 if it was not found
	Needs bool   `json:",omitempty"` // the error is caused by the lack of a running target
	Error string `json:",omitempty"`
}

type wireSite struct {
	Function       string
	Record         uint64
	Kind           string
	Moment         frame.Moment
	Operands, Args []wireOperand
	Target         bool    // the site has a target, whose memory may be read
	Native         *Native `json:",omitempty"`
}

type wireOperand struct {
	Name     string
	Kind     frame.TypeKind
	Width    int
	Spelling string
	Constant *big.Int
	Undef    bool
	Pair     Pair
}

func wireOperands(list []Operand) (out []wireOperand) {
	for _, o := range list {
		out = append(out, wireOperand{o.Name, o.Type.Kind, o.Type.Bits, o.Type.Source, o.Constant, o.Undef, o.Pair})
	}
	return out
}

func operands(list []wireOperand) (out []Operand) {
	for _, o := range list {
		out = append(out, Operand{o.Name, frame.Type{Kind: o.Kind, Bits: o.Width, Source: o.Spelling}, o.Constant, o.Undef, o.Pair})
	}
	return out
}

// tokens calls a function for each token of a shape, including those within others.
func (s *Shape) tokens(each func(*Value)) {
	var of func(v *Value)
	of = func(v *Value) {
		if v != nil {
			each(v)
			of(v.Base)
			of(v.Index)
			of(v.Which)
			for k := range v.Parts {
				of(&v.Parts[k])
			}
		}
	}
	s.walk(func(_ int, _ string, _ int64, p *Placed) {
		of(&p.Value)
		if p.Run != nil {
			of(&p.Run.Count)
			of(p.Run.Refs)
		}
	})
	for n := range s.Frames {
		of(s.Frames[n].Method)
		of(s.Frames[n].Position)
		for k := range s.Frames[n].Monitors {
			of(&s.Frames[n].Monitors[k].Owner)
		}
	}
	for n := range s.Objects {
		of(s.Objects[n].Class)
	}
}

// sound returns an error if a shape from another process is malformed for a site.
func (s *Shape) sound(site *Site) (err error) {
	values := 0
	s.tokens(func(v *Value) {
		values++
		switch {
		case v.Kind < OperandValue || v.Kind > ComputedValue:
			err = errors.New("a token without a kind")
		case v.Kind == OperandValue && (v.Operand < 0 || v.Operand >= len(site.Operands)):
			err = fmt.Errorf("operand %d of %d", v.Operand, len(site.Operands))
		case v.As != "" && known(v.As) != nil:
			err = known(v.As)
		case extends(v.Extend, v.As) != nil:
			err = extends(v.Extend, v.As)
		case v.Kind == LoadValue && (v.Base == nil || v.As == ""), v.Kind == MergeValue && v.Which == nil:
			err = errors.New("an incomplete token")
		case v.Kind == WordsValue && (len(v.Parts) == 0 || len(v.Parts) > maxWords || v.CodecNumber == 0), v.Kind == ComputedValue && (len(v.Parts) != 2 || operators[v.Op] == nil):
			err = errors.New("an incomplete token")
		}
	})
	for n := range s.Frames {
		if !slices.Contains([]string{frame.Reexecute, frame.Completed, frame.Calling, frame.Rethrow}, s.Frames[n].Resume) {
			err = fmt.Errorf("a frame that is resumed by %q", s.Frames[n].Resume)
		}
	}
	if len(s.Frames) == 0 || len(s.Frames) > maxFrames || values > 4*maxPlaced {
		err = fmt.Errorf("%d frames of %d tokens", len(s.Frames), values)
	}
	return err
}
