package vmlayout

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"go.starlark.net/starlark"

	"example.com/reframe/deopt/frame"
	"example.com/reframe/internal/machine"
)

// maxWords bounds the words of a value.
const maxWords = 8

// wordsCodec is a codec for values of several words. Its functions may read memory at an exit.
type wordsCodec interface {
	Codec
	decode(from *Source, words []uint64) (Typed, error)
	// encode returns the new words of a value. words are the present ones.
	encode(from *Source, v Typed, words []uint64) ([]uint64, error)
}

func decode(c Codec, from *Source, words []uint64) (Typed, error) {
	if c, ok := c.(wordsCodec); ok {
		if err := from.over(); err != nil {
			return Typed{}, err
		}
		defer from.ran(time.Now())
		return c.decode(from, words)
	}
	if len(words) != 1 {
		return Typed{}, fmt.Errorf("its codec decodes 1 word, and the value has %d", len(words))
	}
	return c.Decode(words[0])
}

func encode(c Codec, from *Source, v Typed, words []uint64) ([]uint64, error) {
	if c, ok := c.(wordsCodec); ok {
		return c.encode(from, v, words)
	}
	if len(words) != 1 {
		return nil, fmt.Errorf("its codec encodes 1 word, and the value has %d", len(words))
	}
	bits, err := c.Encode(v)
	return []uint64{bits}, err
}

// reads reports whether a codec reads memory at an exit.
func reads(c Codec) bool {
	w, ok := c.(*written)
	return ok && w.reads
}

// These bound all codecs at one exit, because a process may be stopped while they run.
const (
	maxCodecBytes = 16 << 20
	maxCodecReads = 1 << 16
	maxCodecTime  = 10 * time.Second
)

// spent counts the part of these bounds that codecs have used.
type spent struct {
	bytes, reads int
	time         time.Duration
}

// over returns an error if the codecs of the exit have used up a bound.
func (from *Source) over() error {
	switch {
	case from == nil || from.codecs == nil:
		return nil
	case from.codecs.bytes > maxCodecBytes || from.codecs.reads > maxCodecReads:
		return fmt.Errorf("the codecs of this exit read over %d MiB, or over %d times", maxCodecBytes>>20, maxCodecReads)
	case from.codecs.time > maxCodecTime:
		return errCodecTime
	}
	return nil
}

var errCodecTime = fmt.Errorf("the codecs of this exit take over %v", maxCodecTime)

// left returns the time that the codecs of the exit may still take.
func (from *Source) left() time.Duration {
	if from == nil || from.codecs == nil {
		return maxCodecTime
	}
	return max(maxCodecTime-from.codecs.time, 0)
}

// ran adds the time of a codec.
func (from *Source) ran(began time.Time) {
	if from != nil && from.codecs != nil {
		from.codecs.time += time.Since(began)
	}
}

// codecMemory is the memory that codecs read.
type codecMemory struct{ from *Source }

// ReadMemory implements [machine.Memory].
func (m codecMemory) ReadMemory(p []byte, addr machine.Addr) error {
	if used := m.from.codecs; used != nil {
		used.bytes, used.reads = used.bytes+len(p), used.reads+1
		if err := m.from.over(); err != nil {
			return err
		}
	}
	return m.from.Memory.ReadMemory(p, addr)
}

// current returns the source for codecs, which read the memory of the exit; nil for none.
func (from *Source) current() *Source {
	if from == nil || from.Memory == nil {
		return nil
	}
	m := codecMemory{from}
	return &Source{Memory: m, Static: m, Order: from.Order}
}

// written is a codec that two functions of a layout define.
type written struct {
	layout  *Layout
	decodes starlark.Callable
	encodes starlark.Callable
	reads   bool
}

func (c *written) Decode(bits uint64) (Typed, error) { return c.decode(nil, []uint64{bits}) }

func (c *written) Encode(v Typed) (uint64, error) {
	words, err := c.encode(nil, v, []uint64{0})
	if err != nil {
		return 0, err
	}
	return words[0], nil
}

// memory returns the source that the functions may read from; nil for none.
func (c *written) memory(from *Source) *Source {
	if !c.reads {
		return nil
	}
	return from.current()
}

func (c *written) decode(from *Source, words []uint64) (Typed, error) {
	var args []starlark.Value
	for _, w := range words {
		args = append(args, starlark.MakeUint64(w))
	}
	v, err := c.layout.callWithin(from.left(), c.decodes, c.memory(from), args...)
	if err != nil {
		return Typed{}, err
	}
	t, ok := v.(typedValue)
	if !ok {
		return Typed{}, fmt.Errorf("%s: %s returned a %s; expected a typed value, such as i32(n) or ref(bits)", c.layout.Name, c.decodes.Name(), v.Type())
	}
	return t.is, nil
}

func (c *written) encode(from *Source, v Typed, words []uint64) ([]uint64, error) {
	if c.encodes == nil {
		return nil, fmt.Errorf("%s: codec(%s) has no encode: its values cannot be set", c.layout.Name, c.decodes.Name())
	}
	args := []starlark.Value{typedValue{v}}
	if len(words) > 1 {
		for _, w := range words {
			args = append(args, starlark.MakeUint64(w))
		}
	}
	is, err := c.layout.callWithin(from.left(), c.encodes, c.memory(from), args...)
	if err != nil {
		return nil, err
	}
	out := slices.Clone(words)
	if len(words) == 1 {
		if out[0], err = bits64(is); err != nil {
			return nil, fmt.Errorf("%s: %s: %w", c.layout.Name, c.encodes.Name(), err)
		}
		return out, nil
	}
	list, ok := is.(starlark.Indexable)
	if !ok || list.Len() != len(words) {
		return nil, fmt.Errorf("%s: %s returned a %s; expected %d words, each a number or None", c.layout.Name, c.encodes.Name(), is.Type(), len(words))
	}
	for k := range out {
		if list.Index(k) == starlark.None { // None means that the word does not change
			continue
		}
		if out[k], err = bits64(list.Index(k)); err != nil {
			return nil, fmt.Errorf("%s: %s: word %d: %w", c.layout.Name, c.encodes.Name(), k, err)
		}
	}
	return out, nil
}

// tagged decodes values of a tag and a payload, in this order. It ignores further words.
type tagged struct {
	tags map[uint64]string // types, "ref" with the kind of object, or symbols
	mask uint64            // the bits of the tag
}

func (c *tagged) Decode(uint64) (Typed, error) { return c.decode(nil, nil) }
func (c *tagged) Encode(Typed) (uint64, error) {
	return 0, errors.New("tagged decodes a tag and a payload: use words(tag, payload)")
}

func (c *tagged) decode(_ *Source, words []uint64) (Typed, error) {
	if len(words) < 2 {
		return Typed{}, errors.New("tagged decodes a tag and a payload: use words(tag, payload)")
	}
	tag, payload := words[0]&c.mask, words[1]
	kind, ok := c.tags[tag]
	of, isRef := strings.CutPrefix(kind, "ref ")
	switch {
	case !ok:
		return Typed{}, fmt.Errorf("unknown tag %d", tag)
	case kind == "null":
		return Typed{Type: "null"}, nil
	case isRef:
		return Typed{Type: "ref", Bits: payload, Text: of}, nil
	case known(kind) != nil:
		return Typed{Type: "symbol", Bits: payload, Text: kind}, nil
	}
	return Typed{Type: kind, Bits: cut(payload, kind)}, nil // the upper bits of the payload are ignored
}

func (c *tagged) encode(_ *Source, v Typed, words []uint64) ([]uint64, error) {
	if len(words) < 2 {
		return nil, errors.New("tagged encodes a tag and a payload: use words(tag, payload)")
	}
	found, tag := 0, uint64(0)
	for is, kind := range c.tags {
		of, isRef := strings.CutPrefix(kind, "ref ")
		switch {
		case isRef && v.Type == "ref" && (v.Text == of || v.Text == ""):
		case v.Type == "symbol" && v.Text == kind && known(kind) != nil:
		case v.Type == kind && v.Text == "":
		default:
			continue
		}
		if found++; found == 1 || is < tag {
			tag = is
		}
	}
	present := c.tags[words[0]&c.mask]
	if of, isRef := strings.CutPrefix(present, "ref "); isRef && v.Type == "ref" && (v.Text == of || v.Text == "") {
		found, tag = 1, words[0]&c.mask // keep the present tag: it denotes the same kind of object
	}
	if found == 0 {
		return nil, errNoBits("tagged", v)
	}
	if found > 1 && v.Type == "ref" {
		return nil, fmt.Errorf("tagged has %d tags for %s %s: give its kind", found, v.Type, v)
	}
	out := slices.Clone(words)
	out[0] = out[0]&^c.mask | tag
	if v.Type != "symbol" && v.Type != "null" {
		out[1] = v.Bits
	}
	return out, nil
}

// wordsValue is a token for a value of several words.
type wordsValue struct {
	base
	parts  []Value
	codec  Codec
	shared map[int]bool // operands that the layout may put at several places of a frame
}

func (w *wordsValue) AttrNames() []string { return names("decoded_by") }

func (w *wordsValue) Attr(name string) (starlark.Value, error) {
	if name != "decoded_by" {
		return nil, nil
	}
	return method(name, func(t *starlark.Thread, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
		var by starlark.Value
		if err := starlark.UnpackArgs(name, args, kwargs, "codec", &by); err != nil {
			return nil, err
		}
		c, err := codecOf(runOf(t).layout, by)
		return &wordsValue{w.base, w.parts, c, w.shared}, err
	}), nil
}

// partOf makes a token of a word of a value, or of an operand of a computation.
func partOf(v starlark.Value) (Value, error) {
	switch v := v.(type) {
	case *operandValue:
		if v.arg {
			return Value{}, errors.New("an argument of the call has no recorded location")
		}
		if v.codec != nil {
			return Value{}, errors.New("expected bits, got a decoded value")
		}
		return Value{Operand: v.k, As: v.as, Extend: v.extend}, nil
	case *loadValue:
		if v.codec != nil {
			return Value{}, errors.New("expected bits, got a decoded value")
		}
		return load(v)
	case *computedValue:
		if v.codec != nil {
			return Value{}, errors.New("expected bits, got a decoded value")
		}
		return v.token(), nil
	}
	if out, ok, err := literal(v); ok {
		if out.Const.Type == "symbol" {
			err = errors.New("expected a number, got a text")
		}
		return out, err
	}
	return Value{}, fmt.Errorf("expected an operand, a pointee or a number, got a %s", v.Type())
}

// token makes the token of the first value of a row.
func (row *rowValue) token(t *starlark.Thread) (Value, error) {
	switch first := row.first.(type) {
	case *loadValue:
		return load(first)
	case *wordsValue:
		for k := range first.parts {
			if first.parts[k].Kind != LoadValue {
				return Value{}, fmt.Errorf("word %d of the row's first value is not a pointee", k)
			}
		}
		return runOf(t).token(t, first)
	}
	return Value{}, fmt.Errorf("the row begins with a %s; expected a pointee, or words that are pointees", row.first.Type())
}

// number reads the bits of a token that is part of another one.
func (from *Source) number(v *Value) raw {
	got := from.raw(v)
	if got.status == frame.OK && v.As == "" && got.slot != nil && len(got.slot.Bytes) > 8 {
		got.status, got.why = frame.Missing, unread("slot %d has %d bytes; a word has 8", got.slot.Index, len(got.slot.Bytes))
	}
	return got
}

// words reads a value of several words.
func (from *Source) words(v *Value) frame.VMValue {
	out := frame.VMValue{Status: frame.OK}
	words := make([]uint64, len(v.Parts))
	var listed *frame.Slot // the part that the record lists for the collector
	for k := range v.Parts {
		got := from.number(&v.Parts[k])
		if got.slot != nil && out.Slot == nil {
			index := got.slot.Index
			out.Slot = &index
		}
		if got.slot != nil && (listed == nil || got.slot.GC != nil) {
			listed = got.slot
		}
		switch got.status {
		case frame.OK:
		case frame.Guessed:
			out.Doubt(got.why)
		default:
			why := without(got.status, frame.Errorf("its word %d: %w", k, got.why))
			why.Slot = out.Slot
			return why
		}
		words[k] = got.bits
		out.Words = append(out.Words, frame.HexOf(got.bits))
	}
	is, err := decode(v.Codec, from, words)
	if err != nil {
		out.Clear(frame.Missing, unread("its words %s: %v", hexes(out.Words), err))
		return out
	}
	from.decoded(&out, is)
	if listed != nil {
		out.GC = from.collected(&out, listed)
	}
	if is.Type == "ref" && is.Text != "" {
		out.Type += " " + is.Text
	}
	return out
}

func hexes(list []frame.Hex) string {
	var all []string
	for _, h := range list {
		all = append(all, string(h))
	}
	return strings.Join(all, ", ")
}
