package explain

import (
	"example.com/reframe/deopt"
	"example.com/reframe/deopt/frame"
	"example.com/reframe/internal/machine"
	"example.com/reframe/internal/machine/names"
	"example.com/reframe/internal/machine/object"
)

// CodePlace describes the mapping, object, section and symbol that contain an address of code.
type CodePlace struct {
	Mapping *MappedRange  `json:"mapping,omitempty"`
	Object  *ObjectPlace  `json:"object,omitempty"`  // the object, if a JIT registered it
	Module  string        `json:"module,omitempty"`  // the file, or the source of the stack maps
	Section *SectionRange `json:"section,omitempty"` // the section of the object or file
	Symbol  *SymbolRange  `json:"symbol,omitempty"`
	// Source is as in [frame.Frame]; [Explanation.Sources] sets it.
	Source []frame.Source `json:"source,omitempty"`
	Why    string         `json:"why,omitempty"` // the reason why one of these members is missing

	frame *deopt.Frame // the frame at the place
}

// MappedRange is one row of the address space.
type MappedRange struct {
	Start       frame.Hex `json:"start"`
	End         frame.Hex `json:"end"`         // the first address past it
	Permissions string    `json:"permissions"` // as in /proc/PID/maps (proc_pid_maps(5))
	Path        string    `json:"path,omitempty"`
}

// ObjectPlace is a registered object.
type ObjectPlace struct {
	Number int       `json:"number"` // the number of the object in the list, from 1
	Of     int       `json:"of"`
	List   string    `json:"list"`  // the file that contains the list's descriptor
	Entry  frame.Hex `json:"entry"` // the address of its list entry
	Start  frame.Hex `json:"start"` // the address of the registered object in memory
	Size   uint64    `json:"size"`
}

// SectionRange is a section of code where it is loaded.
type SectionRange struct {
	Name  string    `json:"name"`
	Start frame.Hex `json:"start"`
	End   frame.Hex `json:"end"`
}

// SymbolRange is a function, named by its symbol or by the perf map of the process.
type SymbolRange struct {
	Name      string    `json:"name"`
	Demangled string    `json:"demangled,omitempty"` // empty if it equals Name
	NamedBy   string    `json:"named_by,omitempty"`  // as in [frame.Frame]
	Start     frame.Hex `json:"start"`
	Size      uint64    `json:"size,omitempty"` // 0 if the symbol has none
	Offset    uint64    `json:"offset"`         // the offset of the address in the function
}

// mapped names the file or purpose of a mapping.
func mapped(m machine.Mapping) string {
	if m.Path == "" {
		return "memory without a file"
	}
	return m.Path
}

func permissions(m machine.Mapping) string {
	b := []byte("---p")
	for n, x := range []struct {
		set  bool
		mark byte
	}{{m.Read, 'r'}, {m.Write, 'w'}, {m.Exec, 'x'}, {m.Share, 's'}} {
		if x.set {
			b[n] = x.mark
		}
	}
	return string(b)
}

// codePlace describes the mapping, object, section and symbol of a frame's pc. For a return address it looks up the call before that address.
func codePlace(v *deopt.View, f *deopt.Frame) CodePlace {
	out := CodePlace{frame: f}
	at := f.Physical().Lookup()
	if m, ok := v.Target().Mapping(at); ok {
		out.Mapping = &MappedRange{frame.HexOf(m.Start), frame.HexOf(m.End), permissions(m), m.Path}
	}
	if named, by, ok := v.Target().PerfName(at); ok && (f.Code() == nil || f.Code() == v.Space().Found) {
		out.Symbol = &SymbolRange{Name: named.Name, Demangled: names.IfMangled(named.Name), NamedBy: string(by), Start: frame.HexOf(named.Start), Size: named.Size, Offset: uint64(f.Physical().PC - named.Start)}
	}
	if f.Code() == nil {
		out.Why = "no registered object, file or stack map describes this code"
		if _, why := v.Target().JITObjectAt(at); why != "" {
			out.Why = "the JIT object registered here cannot be used: " + why
		} else if m := v.Target().ModuleAt(at); m != nil {
			out.Module, out.Why = m.Path, m.Why
		}
		return out
	}
	if out.Object = registered(v, f.Code().Image); out.Object == nil {
		out.Module = f.Code().Name
	}
	if f.Code().Image != nil {
		if s := f.Code().Image.CodeAt(at); s != nil {
			out.Section = &SectionRange{s.Name, frame.HexOf(s.Loaded()), frame.HexOf(s.Loaded() + machine.Addr(s.Size))}
		}
	}
	if name, start, ok := f.SymbolAt(at); ok {
		out.Symbol = &SymbolRange{Name: name, Demangled: names.IfMangled(name), Start: frame.HexOf(start), Size: f.Code().SymbolAt(at).Size, Offset: uint64(f.Place() - start)}
	} else if out.Symbol == nil {
		out.Why = "no symbol covers it"
	}
	return out
}

// registered finds the entry of a registered object, or nil.
func registered(v *deopt.View, img *object.Image) *ObjectPlace {
	for _, r := range v.Target().Registries {
		for n, e := range r.Entries {
			if img != nil && e.Image() == img {
				return &ObjectPlace{n + 1, len(r.Entries), r.Module, frame.HexOf(e.Addr), frame.HexOf(e.Start), e.Size}
			}
		}
	}
	return nil
}
