package explain

import (
	"example.com/reframe/deopt"
	"example.com/reframe/deopt/frame"
	"example.com/reframe/internal/machine"
	"example.com/reframe/internal/machine/names"
	"example.com/reframe/internal/machine/object"
)

// CodePlace says what an address of code lies in.
type CodePlace struct {
	Mapping *MappedRange  `json:"mapping,omitempty"`
	Object  *ObjectPlace  `json:"object,omitempty"`  // that a JIT registered
	Module  string        `json:"module,omitempty"`  // the file, or where maps were found
	Section *SectionRange `json:"section,omitempty"` // of the object or file
	Symbol  *SymbolRange  `json:"symbol,omitempty"`
	// Source is as in [frame.Frame], once [Explanation.Sources] was asked.
	Source []frame.Source `json:"source,omitempty"`
	Why    string         `json:"why,omitempty"` // no more is known

	frame *deopt.Frame // that the place was asked for
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
	Number int       `json:"number"` // in its list, from 1
	Of     int       `json:"of"`
	List   string    `json:"list"`  // the file that has the list's descriptor
	Entry  frame.Hex `json:"entry"` // of the list
	Start  frame.Hex `json:"start"` // of the object as it was registered, in memory
	Size   uint64    `json:"size"`
}

// SectionRange is a section of code where it is loaded.
type SectionRange struct {
	Name  string    `json:"name"`
	Start frame.Hex `json:"start"`
	End   frame.Hex `json:"end"`
}

// SymbolRange is a function, by its symbol or by what the process told perf.
type SymbolRange struct {
	Name      string    `json:"name"`
	Demangled string    `json:"demangled,omitempty"` // where it differs from Name
	NamedBy   string    `json:"named_by,omitempty"`  // as in [frame.Frame]
	Start     frame.Hex `json:"start"`
	Size      uint64    `json:"size,omitempty"` // 0 where the symbol has none
	Offset    uint64    `json:"offset"`         // of the address
}

// mapped names what is behind a mapping.
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

// codePlace says what the pc of a frame lies in. What a return address belongs to is told by
// the call before it.
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
		out.Why = "no registered object, no file and no stack map says anything of this code"
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
