package maps

import (
	"example.com/reframe/deopt/frame"
	"example.com/reframe/deopt/stackmap"
	"example.com/reframe/internal/machine"
	"example.com/reframe/internal/vm/vmlayout"
)

// Schema names the JSON of [Maps]. It is written in pieces, as a section may hold a million records: {"schema", "source", "images": [[ImageJSON] with
// "functions": [[FunctionJSON] with "records": [[RecordJSON]]]]}.
const Schema = "reframe.maps/v1"

// ImageJSON is an image with stack maps.
type ImageJSON struct {
	Name    string    `json:"name"`
	Format  string    `json:"format,omitempty"`
	Arch    string    `json:"arch,omitempty"`    // Go's name; empty if not known
	Dialect string    `json:"dialect,omitempty"` // layout of the section
	Also    []string  `json:"also,omitempty"`    // other layouts that also fit the whole section
	Error   string    `json:"error,omitempty"`   // why its maps cannot be read
	Maps    []MapJSON `json:"maps,omitempty"`    // one for each object that was linked into the image
}

// MapJSON is the header of a map.
type MapJSON struct {
	Version   int    `json:"version"` // as in the header
	Dialect   string `json:"dialect"`
	Offset    int64  `json:"offset"` // offset of the map in the section
	Functions int    `json:"functions"`
	Constants int    `json:"constants"`
	Records   int    `json:"records"`
}

// FunctionJSON is a function without its records.
type FunctionJSON struct {
	Map       int           `json:"map"` // number of its map
	Name      string        `json:"name,omitempty"`
	Aliases   []string      `json:"aliases,omitempty"`    // its other names
	Demangled string        `json:"demangled,omitempty"`  // if it differs from the name
	Address   frame.Hex     `json:"address,omitempty"`    // empty in an unlinked object
	Code      frame.Hex     `json:"code,omitempty"`       // start of its code if not at the address: on ppc64 big-endian the address is a descriptor's
	StackSize *uint64       `json:"stack_size,omitempty"` // size of the frame in bytes; nil if it is dynamic
	Prologue  *PrologueJSON `json:"prologue,omitempty"`   // only in the yk layout
	// Unattributed is set if this is not a function but a list of records: those of a map of version 1, which does not show to which function a record
	// belongs.
	Unattributed bool `json:"unattributed,omitempty"`
}

// PrologueJSON describes a function's prologue in the current yk layout.
type PrologueJSON struct {
	FramePointer bool        `json:"frame_pointer"`
	Saved        []SavedJSON `json:"saved"`
}

// SavedJSON is a register that the prologue saves.
type SavedJSON struct {
	Register string `json:"register"`
	DWARF    uint16 `json:"dwarf"`
	Offset   int64  `json:"offset"`
}

// RecordJSON is one record of a function.
type RecordJSON struct {
	ID         uint64            `json:"id"`
	Offset     uint32            `json:"offset"`
	Address    frame.Hex         `json:"address,omitempty"` // address of the site; empty in an unlinked object
	Flags      uint16            `json:"flags,omitempty"`
	Site       string            `json:"site,omitempty"`      // stackmap, patchpoint, statepoint, deoptimize; empty if not known
	SiteSure   bool              `json:"site_sure,omitempty"` // a module confirms the kind; else it is inferred from the shape of the record
	Line       int               `json:"line,omitempty"`      // line of the site in the module
	Note       string            `json:"note,omitempty"`
	Statepoint *StatepointJSON   `json:"statepoint,omitempty"`
	Variables  *int              `json:"variables,omitempty"` // the live variables, some without a location; only in the yk layouts
	Locations  []LocationJSON    `json:"locations"`
	LiveOuts   []LiveOut         `json:"live_outs,omitempty"`
	VM         *vmlayout.Outline `json:"vm,omitempty"` // VM frames of the record, if layouts were given
}

// StatepointJSON is the head of a statepoint's record.
type StatepointJSON struct {
	CallingConvention uint64 `json:"calling_convention"`
	Flags             uint64 `json:"flags"`
	GCTransition      bool   `json:"gc_transition"`
	Deopt             int    `json:"deopt"`   // number of deopt values
	Pairs             int    `json:"pairs"`   // number of pairs of a base and a derived pointer
	Allocas           int    `json:"allocas"` // number of allocas
}

// LocationJSON is a location with its purpose.
type LocationJSON struct {
	frame.Location
	Role     string  `json:"role,omitempty"`     // such as "deopt 0", "derived 1", "live 2"
	Name     string  `json:"name,omitempty"`     // as the module spells it
	Type     string  `json:"type,omitempty"`     // as the module spells it
	Pointers int     `json:"pointers,omitempty"` // number of pointers in a gc location that holds several
	Variable *int    `json:"variable,omitempty"` // index of its live variable, in the yk layouts
	Extra    []int16 `json:"extra,omitempty"`    // further locations of the value, in the yk layout
}

// LiveOut is a register that is live after the site.
type LiveOut struct {
	Register string `json:"register"`
	DWARF    uint16 `json:"dwarf"`
	Size     uint8  `json:"size"` // bytes
}

// JSON returns the image without its functions.
func (i *Image) JSON() ImageJSON {
	out := ImageJSON{Name: i.Name, Format: i.Format}
	if i.Arch != nil {
		out.Arch = i.Arch.Name
	}
	if i.Err != nil {
		out.Error = i.Err.Error()
	}
	if i.Section == nil {
		return out
	}
	out.Dialect = string(i.Section.Dialect)
	for _, d := range i.Section.Also {
		out.Also = append(out.Also, string(d))
	}
	for _, m := range i.Section.Maps {
		out.Maps = append(out.Maps, MapJSON{m.Version, string(m.Dialect), m.Offset, len(m.Functions), m.NumConstants(), m.Len()})
	}
	return out
}

// JSON returns the function without its records.
func (f *Function) JSON() FunctionJSON {
	out := FunctionJSON{Map: f.Number, Name: f.Name, Aliases: f.Aliases}
	if f.Demangled != f.Name {
		out.Demangled = f.Demangled
	}
	if f.Loose {
		out.Unattributed = true
		return out
	}
	if !f.Image.Unlinked {
		out.Address = frame.HexOf(f.Addr)
		if f.CodeKnown && f.Code != f.Addr {
			out.Code = frame.HexOf(f.Code)
		}
	}
	if f.StackSize != stackmap.DynamicStack {
		out.StackSize = &f.StackSize
	}
	if p, ok := f.Prologue(); ok {
		out.Prologue = &PrologueJSON{FramePointer: p.HasFramePointer, Saved: []SavedJSON{}}
		for _, s := range p.Saved {
			out.Prologue.Saved = append(out.Prologue.Saved, SavedJSON{f.Image.RegisterName(s.Reg, 0), uint16(s.Reg), int64(s.Offset)})
		}
	}
	return out
}

// JSONRecord writes a record of the function to out. It reuses the slices of out, as there may be a million records.
func (f *Function) JSONRecord(rec *stackmap.Record, out *RecordJSON) {
	locations, liveOuts := out.Locations[:0], out.LiveOuts[:0]
	if locations == nil {
		locations = []LocationJSON{}
	}
	*out = RecordJSON{ID: uint64(rec.ID), Offset: rec.Offset, Flags: rec.Flags}
	if addr, ok := f.Site(rec); ok {
		out.Address = frame.HexOf(addr)
	}
	var r Reading
	f.Read(rec, &r)
	out.Site, out.SiteSure, out.Note = r.Kind, r.Sure, r.Note
	if len(r.Sites) == 1 {
		out.Line = r.Sites[0].Instr.Line
	}
	if sp, ok := r.Statepoint(); ok {
		out.Statepoint = &StatepointJSON{sp.CallConv, sp.Flags, sp.Flags&1 != 0, len(sp.Deopt), len(sp.Pairs), len(sp.Allocas)}
	}
	variable := variables(rec)
	if n := len(rec.Vars); rec.Vars != nil {
		out.Variables = &n
	}
	for n, l := range rec.Locations {
		role := r.Role(n)
		doc := LocationJSON{Location: f.Image.Location(f.Map, l), Role: role.String(), Name: role.Name, Type: role.Type, Pointers: f.Pointers(&r, n, l)}
		if variable != nil {
			doc.Variable = &variable[n]
		}
		if rec.Extra != nil {
			doc.Extra = rec.Extra[n]
		}
		locations = append(locations, doc)
	}
	for _, l := range rec.LiveOuts {
		liveOuts = append(liveOuts, LiveOut{f.Image.RegisterName(l.Reg, 0), uint16(l.Reg), l.Size})
	}
	out.Locations, out.LiveOuts = locations, liveOuts
	out.VM = f.VM(rec, &r)
}

// variables returns for each location the index of its live variable, or nil in layouts with one location for each variable.
func variables(rec *stackmap.Record) []int {
	if rec.Vars == nil {
		return nil
	}
	list := make([]int, 0, len(rec.Locations))
	for v, n := range rec.Vars {
		for range n {
			list = append(list, v)
		}
	}
	return list
}

// Pointers returns the number of pointers in a location of a statepoint's gc values if the location holds several, and otherwise 0. LLVM records
// several pointers as one location whose size is a multiple of the pointer's size.
func (f *Function) Pointers(r *Reading, n int, l stackmap.Location) int {
	if !r.statepoint || f.Image.Arch == nil || l.Kind != stackmap.Indirect && l.Kind != stackmap.Register {
		return 0
	}
	first := stackmap.StatepointHead + len(r.sp.Deopt)
	size := f.Image.pointer()
	if n < first || n >= first+2*len(r.sp.Pairs) || int(l.Size) <= size || int(l.Size)%size != 0 {
		return 0
	}
	return int(l.Size) / size
}

// Prologue returns the description of the function's prologue in the current yk layout.
func (f *Function) Prologue() (stackmap.Prologue, bool) {
	if f.Loose {
		return stackmap.Prologue{}, false
	}
	return f.Map.Prologue(f.Index)
}

// RegisterName returns the name of size bytes of a register, or of the whole register if size is 0.
func (i *Image) RegisterName(r machine.DWARFReg, size int) string {
	switch {
	case i.Arch == nil:
		return unknownArch.RegisterName(r)
	case size == 0:
		return i.Arch.RegisterName(r)
	}
	return i.Arch.NameOf(r, size)
}

// pointer returns the size of an address in the image, whose architecture is known.
func (i *Image) pointer() int {
	if i.image != nil && i.image.Narrow() {
		return 4
	}
	return i.Arch.Pointer
}

// FramePointer returns the name of the register that holds the frame pointer.
func (i *Image) FramePointer() string {
	if i.Arch == nil {
		return "frame pointer"
	}
	return i.Arch.RegisterName(i.Arch.FP)
}

// unknownArch has no registers, so that registers are shown by number.
var unknownArch = new(machine.Arch)

// Location returns the location of a value in a map of the image.
func (i *Image) Location(m *stackmap.Map, l stackmap.Location) frame.Location {
	arch := i.Arch
	if arch == nil {
		arch = unknownArch
	}
	return stackmap.LocationOf(m, l, arch)
}
