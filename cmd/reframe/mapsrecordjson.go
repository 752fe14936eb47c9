package main

import (
	"encoding/json"
	"strconv"
	"strings"

	"reframe/deopt/maps"
)

// jsonLines puts JSON together as [json.MarshalIndent] does with two spaces, without asking at run time what a value is made of:
// that takes nine times as long, and there may be a million records.
type jsonLines struct {
	b     []byte
	depth int  // of the indentation
	some  bool // the object or list that is open has a member
}

// lines is what lies between two elements: a comma, the end of the line and the indentation of the next.
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

// next begins the next element of a list.
func (j *jsonLines) next() {
	from := len(",")
	if j.some {
		from = 0
	}
	j.b = append(j.b, lines[from:len(",\n")+2*j.depth]...)
	j.some = true
}

// name begins the next member of an object. Its name is given as it is written, with quotes and colon.
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

// unplain are the bytes of a string that encoding/json writes otherwise, or safeJSON may.
var unplain = func() (all [256]bool) {
	for c := range all {
		all[c] = c < ' ' || c >= 0x7f || strings.ContainsRune("\"\\<>&", rune(c))
	}
	return all
}()

func (j *jsonLines) text(name, s string) {
	j.name(name)
	for n := range len(s) {
		if unplain[s[n]] {
			text, _ := json.Marshal(s) // of a string there is no error
			j.b = append(j.b, safeJSON(text)...)
			return
		}
	}
	j.b = append(append(append(j.b, '"'), s...), '"')
}

// notEmpty is text where there is one.
func (j *jsonLines) notEmpty(name, s string) {
	if s != "" {
		j.text(name, s)
	}
}

// notZero is number where it is another than zero.
func (j *jsonLines) notZero(name string, n int64) {
	if n != 0 {
		j.number(name, n)
	}
}

// record writes a record. TestRecordsAreAsMarshalled holds it against encoding/json.
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
	j.close('}')
}

func (j *jsonLines) location(l *maps.LocationJSON) {
	j.open('{')
	j.text(`"kind": `, l.Kind)
	j.notEmpty(`"register": `, l.Register)
	if l.DWARF != nil {
		j.number(`"dwarf": `, int64(*l.DWARF))
	}
	j.number(`"offset": `, int64(l.Offset))
	j.number(`"size": `, int64(l.Size))
	j.notEmpty(`"constant": `, l.Constant)
	j.notEmpty(`"role": `, l.Role)
	j.notEmpty(`"name": `, l.Name)
	j.notEmpty(`"type": `, l.Type)
	j.notZero(`"pointers": `, int64(l.Pointers))
	if l.Variable != nil {
		j.number(`"variable": `, int64(*l.Variable))
	}
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
