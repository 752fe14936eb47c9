package text

import (
	"encoding/json"
	"strconv"
	"strings"

	"example.com/reframe/internal/static/maps"
)

// jsonLines builds JSON as [json.MarshalIndent] does with two spaces, but without reflection, which takes nine times as long; there may be a million
// records.
type jsonLines struct {
	b     []byte
	depth int  // depth of the indentation
	some  bool // the open object or list already has a member
}

// lines is the text between two elements: a comma, the end of the line and the indentation of the next.
const lines = ",\n                                        "

func (j *jsonLines) open(bracket byte) {
	j.b = append(j.b, bracket)
	j.depth, j.some = j.depth+1, false
}

func (j *jsonLines) close(bracket byte) {
	if j.depth--; j.some {
		j.b = append(j.b, lines[len(","):len(",\n")+2*j.depth]...)
	}
	j.b, j.some = append(j.b, bracket), true
}

// next starts the next element of a list.
func (j *jsonLines) next() {
	from := len(",")
	if j.some {
		from = 0
	}
	j.b = append(j.b, lines[from:len(",\n")+2*j.depth]...)
	j.some = true
}

// name starts the next member of an object. The argument is the name with its quotes and colon.
func (j *jsonLines) name(name string) {
	j.next()
	j.b = append(j.b, name...)
}

func (j *jsonLines) number(name string, n int64) {
	j.name(name)
	j.b = strconv.AppendInt(j.b, n, 10)
}

func (j *jsonLines) unsigned(name string, n uint64) {
	j.name(name)
	j.b = strconv.AppendUint(j.b, n, 10)
}

func (j *jsonLines) yes(name string) {
	j.name(name)
	j.b = append(j.b, "true"...)
}

// unplain marks the bytes that encoding/json or safeJSON may escape in a string.
var unplain = func() (all [256]bool) {
	for c := range all {
		all[c] = c < ' ' || c >= 0x7f || strings.ContainsRune("\"\\<>&", rune(c))
	}
	return all
}()

func (j *jsonLines) text(name, s string) {
	j.name(name)
	j.b = appendText(j.b, s)
}

// appendText appends a string in quotes.
func appendText(b []byte, s string) []byte {
	for n := range len(s) {
		if unplain[s[n]] {
			text, _ := json.Marshal(s) // a string never fails
			return append(b, SafeJSON(text)...)
		}
	}
	return append(append(append(b, '"'), s...), '"')
}

// notEmpty writes a string member unless it is empty.
func (j *jsonLines) notEmpty(name, s string) {
	if s != "" {
		j.text(name, s)
	}
}

// notZero writes a number member unless it is zero.
func (j *jsonLines) notZero(name string, n int64) {
	if n != 0 {
		j.number(name, n)
	}
}

// function writes a function and leaves it open after the start of its records. TestFunctionsAreAsMarshalled compares it with encoding/json.
func (j *jsonLines) function(f *maps.FunctionJSON) {
	j.open('{')
	j.number(`"map": `, int64(f.Map))
	j.notEmpty(`"name": `, f.Name)
	j.texts(`"aliases": `, f.Aliases)
	j.notEmpty(`"demangled": `, f.Demangled)
	j.notEmpty(`"address": `, string(f.Address))
	j.notEmpty(`"code": `, string(f.Code))
	if f.StackSize != nil {
		j.unsigned(`"stack_size": `, *f.StackSize)
	}
	if p := f.Prologue; p != nil {
		j.name(`"prologue": `)
		j.open('{')
		j.name(`"frame_pointer": `)
		j.b = strconv.AppendBool(j.b, p.FramePointer)
		j.name(`"saved": `)
		j.open('[')
		for _, s := range p.Saved {
			j.next()
			j.open('{')
			j.text(`"register": `, s.Register)
			j.number(`"dwarf": `, int64(s.DWARF))
			j.number(`"offset": `, s.Offset)
			j.close('}')
		}
		j.close(']')
		j.close('}')
	}
	if f.Unattributed {
		j.yes(`"unattributed": `)
	}
	j.name(`"records": `)
	j.b = append(j.b, '[')
}

// texts writes a list of strings unless it is empty.
func (j *jsonLines) texts(name string, list []string) {
	if len(list) == 0 {
		return
	}
	j.name(name)
	j.open('[')
	for _, s := range list {
		j.next()
		j.b = appendText(j.b, s)
	}
	j.close(']')
}

// record writes a record. TestRecordsAreAsMarshalled compares it with encoding/json.
func (j *jsonLines) record(r *maps.RecordJSON) {
	j.open('{')
	j.unsigned(`"id": `, r.ID)
	j.number(`"offset": `, int64(r.Offset))
	j.notEmpty(`"address": `, string(r.Address))
	j.notZero(`"flags": `, int64(r.Flags))
	j.notEmpty(`"site": `, r.Site)
	if r.SiteSure {
		j.yes(`"site_sure": `)
	}
	j.notZero(`"line": `, int64(r.Line))
	j.notEmpty(`"note": `, r.Note)
	if s := r.Statepoint; s != nil {
		j.name(`"statepoint": `)
		j.open('{')
		j.unsigned(`"calling_convention": `, s.CallingConvention)
		j.unsigned(`"flags": `, s.Flags)
		j.name(`"gc_transition": `)
		j.b = strconv.AppendBool(j.b, s.GCTransition)
		j.number(`"deopt": `, int64(s.Deopt))
		j.number(`"pairs": `, int64(s.Pairs))
		j.number(`"allocas": `, int64(s.Allocas))
		j.close('}')
	}
	if r.Variables != nil {
		j.number(`"variables": `, int64(*r.Variables))
	}
	j.name(`"locations": `)
	j.open('[')
	for n := range r.Locations {
		j.next()
		j.location(&r.Locations[n])
	}
	j.close(']')
	if len(r.LiveOuts) > 0 {
		j.name(`"live_outs": `)
		j.open('[')
		for _, l := range r.LiveOuts {
			j.next()
			j.open('{')
			j.text(`"register": `, l.Register)
			j.number(`"dwarf": `, int64(l.DWARF))
			j.number(`"size": `, int64(l.Size))
			j.close('}')
		}
		j.close(']')
	}
	if r.VM != nil {
		j.name(`"vm": `)
		vm, _ := json.MarshalIndent(r.VM, lines[len(",\n"):len(",\n")+2*j.depth], "  ") // numbers, texts and lists never fail
		j.b = append(j.b, SafeJSON(vm)...)
	}
	j.close('}')
}

// These are the members of a location after the first. Each includes the text before it, with the indentation of a record's locations.
var (
	memberRegister = member("register")
	memberDWARF    = member("dwarf")
	memberOffset   = member("offset")
	memberSize     = member("size")
	memberConstant = member("constant")
	memberRole     = member("role")
	memberName     = member("name")
	memberType     = member("type")
	memberPointers = member("pointers")
	memberVariable = member("variable")
)

// locationDepth is the depth of the members of a location.
const locationDepth = 9

func member(name string) string { return lines[:len(",\n")+2*locationDepth] + `"` + name + `": ` }

// location writes a location. Most of the text are locations, so each member is written as one string together with the text before it.
func (j *jsonLines) location(l *maps.LocationJSON) {
	j.open('{')
	j.text(`"kind": `, l.Kind)
	b := j.b
	if l.Register != "" {
		b = appendText(append(b, memberRegister...), l.Register)
	}
	if l.DWARF != nil {
		b = strconv.AppendUint(append(b, memberDWARF...), uint64(*l.DWARF), 10)
	}
	b = strconv.AppendInt(append(b, memberOffset...), int64(l.Offset), 10)
	b = strconv.AppendInt(append(b, memberSize...), int64(l.Size), 10)
	if l.Constant != "" {
		b = appendText(append(b, memberConstant...), l.Constant)
	}
	if l.Role != "" {
		b = appendText(append(b, memberRole...), l.Role)
	}
	if l.Name != "" {
		b = appendText(append(b, memberName...), l.Name)
	}
	if l.Type != "" {
		b = appendText(append(b, memberType...), l.Type)
	}
	if l.Pointers != 0 {
		b = strconv.AppendInt(append(b, memberPointers...), int64(l.Pointers), 10)
	}
	if l.Variable != nil {
		b = strconv.AppendInt(append(b, memberVariable...), int64(*l.Variable), 10)
	}
	j.b = b
	if len(l.Extra) > 0 {
		j.name(`"extra": `)
		j.open('[')
		for _, n := range l.Extra {
			j.next()
			j.b = strconv.AppendInt(j.b, int64(n), 10)
		}
		j.close(']')
	}
	j.close('}')
}
