package html

import (
	"fmt"
	"strings"

	"example.com/reframe/deopt/frame"
	"example.com/reframe/deopt/stackmap"
	"example.com/reframe/internal/machine"
)

// Registers holds the registers as the frame's function sees them.
type Registers struct {
	There   []Register
	Missing []Lost
	kept    map[int]bool
}

// Register is a register that is available, or that has the location of a value.
type Register struct {
	Name   string
	Pieces []Piece // the digits of a number, or the bytes of a vector register in the order of memory
	Notes  []string
	Why    string // the reason why it is unavailable
	Keys   string // the keys of the values whose location it is
	// Anchors has the ids of an unavailable register; an available one has them in its pieces.
	Anchors []string
}

// Lost lists registers that are unavailable for one reason.
type Lost struct {
	Why   string
	Names []string
}

// use is the part of a register that contains a value.
type use struct {
	k          int
	skip, size int // skip: number of bytes before the part, from the least significant byte or, in a vector register, the first; size: in bytes
	via        bool
}

// These bound the shown bytes of a register: the maximum, and the minimum for a vector register.
const (
	maxRegister = 64
	leastVector = 16
)

func (at *Place) registers() *Registers {
	f := at.frame
	arch, regs := f.View().Target().Arch(), f.Physical().Registers
	if f.Match() != nil {
		regs = f.Reader().Registers
	}
	uses := at.uses()
	out := &Registers{kept: map[int]bool{}}
	reasons := map[string]int{}
	for _, reg := range arch.Registers() {
		info, _ := arch.Register(reg)
		used := uses[reg]
		if len(used) == 0 && info.Class != machine.General && reg != arch.PC && reg != arch.SP {
			continue
		}
		b, err := regs.Bytes(reg)
		switch {
		case err == nil:
			out.There = append(out.There, at.register(arch, info, b, used, out.kept))
		case len(used) > 0:
			r := Register{Name: info.Name, Why: err.Error()}
			var keys []string
			for _, u := range used {
				keys = append(keys, key(u.k))
				if !out.kept[u.k] && !u.via {
					out.kept[u.k] = true
					r.Anchors = append(r.Anchors, "register-"+key(u.k))
				}
			}
			r.Keys = strings.Join(keys, " ")
			out.There = append(out.There, r)
		default:
			why := err.Error()
			if r, ok := err.(*frame.Reason); ok {
				why = r.Without(info.Name) // most reasons differ only in the register's name; without it they can be grouped
			}
			n, known := reasons[why]
			if !known {
				n = len(out.Missing)
				reasons[why] = n
				out.Missing = append(out.Missing, Lost{Why: why})
			}
			out.Missing[n].Names = append(out.Missing[n].Names, info.Name)
		}
	}
	return out
}

// uses returns the registers that contain values or their base addresses.
func (at *Place) uses() map[machine.DWARFReg][]use {
	out := map[machine.DWARFReg][]use{}
	for k := range at.Values {
		loc := at.Values[k].Location
		if loc == nil || loc.DWARF == nil {
			continue
		}
		u := use{k: k, via: true}
		if loc.Kind == stackmap.Register.String() {
			u = use{k: k, skip: int(loc.Offset) / 8, size: loc.Size}
		}
		reg := machine.DWARFReg(*loc.DWARF)
		out[reg] = append(out[reg], u)
	}
	return out
}

// register cuts a register into the parts that belong to values.
func (at *Place) register(arch *machine.Arch, info machine.RegisterInfo, b []byte, used []use, kept map[int]bool) Register {
	r := Register{Name: info.Name}
	number := len(b) <= 8
	shown := len(b)
	if !number && !arch.BigEndian() { // show the bytes up to the last value, at least leastVector
		shown = leastVector
		for _, u := range used {
			shown = max(shown, u.skip+u.size)
		}
	}
	if shown = min(shown, maxRegister); shown < len(b) {
		r.Notes = append(r.Notes, count(len(b)-shown, "more byte"))
		b = b[:shown]
	}
	if number {
		r.Pieces = append(r.Pieces, Piece{Text: "0x"})
		if !arch.BigEndian() { // the most significant byte is written first
			swapped := make([]byte, len(b))
			for i := range b {
				swapped[len(b)-1-i] = b[i]
			}
			b = swapped
		}
	}
	has := func(u use, i int) bool { // i counts bytes in the written order
		from := i
		if number || arch.BigEndian() {
			from = len(b) - 1 - i
		}
		return u.via || from >= u.skip && from < u.skip+u.size
	}
	for i := 0; i < len(b); {
		end := i + 1
		for end < len(b) && !differs(used, func(u use) bool { return has(u, i) != has(u, end) }) {
			end++
		}
		format := "% x"
		if number {
			format = "%x"
		}
		if !number && i > 0 {
			r.Pieces = append(r.Pieces, Piece{Text: " "})
		}
		p := Piece{Text: fmt.Sprintf(format, b[i:end])}
		var keys, via []string
		for _, u := range used {
			switch {
			case !has(u, i):
			case u.via:
				via = append(via, key(u.k))
			default:
				keys = append(keys, key(u.k))
				if !kept[u.k] {
					kept[u.k], p.Anchors = true, append(p.Anchors, "register-"+key(u.k))
				}
			}
		}
		p.Keys, p.Via = strings.Join(keys, " "), strings.Join(via, " ")
		r.Pieces, i = append(r.Pieces, p), end
	}
	for _, u := range used {
		if !u.via {
			r.Notes = append(r.Notes, at.called(u.k))
		}
	}
	return r
}

func differs(used []use, is func(use) bool) bool {
	for _, u := range used {
		if is(u) {
			return true
		}
	}
	return false
}

// shown returns the values whose anchor is in a register.
func (r *Registers) shown() map[int]bool {
	if r == nil {
		return nil
	}
	return r.kept
}
