package described

import (
	"fmt"
	"slices"
	"time"

	"example.com/reframe/internal/llvm/ir"
	"example.com/reframe/internal/llvm/sites"
	"example.com/reframe/internal/machine"
	"example.com/reframe/internal/machine/object"
)

// Dumps decides which dumped module may name the values of which code, for a process that writes its IR to files while it runs. It holds the versions of
// modules that were read, and the objects that the process registered after it wrote each of them.
//
// If the process writes a module and then registers its code, the order of these events is the evidence. Otherwise, and for files from before the
// process, it needs evidence in the code ([sites.Provenance]). Files and images are hostile: the number of remembered functions is bounded.
type Dumps struct {
	live     *ir.LiveSet
	began    time.Time // when the process started; zero where nothing of it has run when the first files are read
	versions map[*ir.Module]*version
	texts    map[uint64]*version
	order    []*version                 // as they were read
	objects  map[string][]*object.Image // that define a function, in the order in which they were registered
	count    int                        // of them
	full     bool
	seen     map[*object.Image]bool
}

// version is one content of a file.
type version struct {
	module   *ir.Module
	path     string
	modified time.Time
	named    bool // the user named its file, it was there before the process started, and the file still holds it
	old      bool // it was there before the process started
	early    bool // it was there before its process was watched
	open     bool // it was written, and no object was registered since that has code of it
	owners   map[*object.Image]bool
}

// maxFunctions bounds the functions of objects that are remembered.
const maxFunctions = 1 << 18

// NewDumps makes a set of the files that names lead to, of which have were read just now. began is when the process started, zero for one of which
// nothing has run yet.
func NewDumps(names []string, have []*ir.Module, began time.Time) *Dumps {
	s := &Dumps{live: ir.NewLiveSet(names), began: began, versions: map[*ir.Module]*version{}, texts: map[uint64]*version{}}
	s.live.Have(have)
	s.Begin()
	return s
}

// Begin begins with another process: all that was written up to now is older than it, unless it started before.
func (s *Dumps) Begin() {
	s.objects, s.seen, s.count, s.full = map[string][]*object.Image{}, map[*object.Image]bool{}, 0, false
	list, _ := s.live.Read()
	for _, v := range list {
		if is := s.add(v); is != nil {
			is.named = v.Named && !v.Module.Found // the user named the file
		}
	}
	for _, is := range s.order {
		is.old, is.early, is.open, is.owners = s.began.IsZero() || is.modified.Before(s.began), true, false, map[*object.Image]bool{}
	}
}

// add adds a version that is new, and nil where its text was read before.
func (s *Dumps) add(v ir.FileVersion) *version {
	known := s.texts[v.Hash]
	for _, before := range s.order {
		if before.path == v.Path && before != known { // the user named the file, not what it held before
			before.named = false
		}
	}
	if known != nil {
		known.open, known.modified = true, v.Modified // it was written once more
		return nil
	}
	is := &version{module: v.Module, path: v.Path, modified: v.Modified, open: true, owners: map[*object.Image]bool{}}
	s.versions[v.Module], s.texts[v.Hash] = is, is
	s.order = append(s.order, is)
	return is
}

// Registered reads what was written since the last time, and returns all modules that files had so far. The image is code that the process has just
// registered or loaded; nil where that is not known.
func (s *Dumps) Registered(img *object.Image) (modules []*ir.Module, notes []string) {
	list, notes := s.live.Read()
	for _, v := range list {
		s.add(v)
	}
	for _, v := range s.order {
		modules = append(modules, v.module)
	}
	if img == nil || !img.Registered || s.seen[img] {
		return modules, notes
	}
	s.seen[img] = true
	var fresh []*version
	for f := range img.Functions() {
		var of []*version
		for _, v := range s.order {
			if v.open && sites.Emitted(v.module, f.Name) != nil {
				of = append(of, v)
			}
		}
		s.remember(f.Name, img)
		for _, v := range of { // of several evidence has to say which it is
			v.owners[img] = true
		}
		fresh = append(fresh, of...)
	}
	for _, v := range fresh {
		v.open = false
	}
	return modules, notes
}

func (s *Dumps) remember(name string, img *object.Image) {
	if s.count == maxFunctions {
		s.full = true
		return
	}
	s.count++
	s.objects[name] = append(s.objects[name], img)
}

// Refuses says why a module may not name the values of a function of an image, although its sites fit; "" where it may, or where it is none of the set.
func (s *Dumps) Refuses(ms *sites.Modules, img *object.Image, start machine.Addr, f *ir.Func) string {
	v := s.versions[f.Module]
	if v == nil || v.named && len(v.owners) == 0 || img == nil {
		return ""
	}
	p := ms.ProvenanceOf(img, start, f)
	switch {
	case p.Sure == sites.Certain:
		return ""
	case p.Sure == sites.Contradicted:
		return p.Why
	case v.owners[img]:
		return s.doubts(ms, img, start, v, f, func(other *version) bool { return other.owners[img] })
	case v.old:
		return fmt.Sprintf("%s was written before the process started, and nothing tells for certain that the code of @%s was compiled from it; --ir with the name of the file says so", v.path, f.Name)
	case len(v.owners) > 0 || !v.early && p.Sure == sites.Open:
		return fmt.Sprintf("%s was not written just before the code of @%s was registered, and nothing tells for certain that this was compiled from it", v.path, f.Name)
	}
	return s.doubts(ms, img, start, v, f, func(other *version) bool { return !other.old })
}

// doubts says why neither the order of events nor the code tells that code was compiled from a version: another version that counts may be meant, or the
// version may be that of other code.
func (s *Dumps) doubts(ms *sites.Modules, img *object.Image, start machine.Addr, v *version, f *ir.Func, counts func(*version) bool) string {
	for other := range s.rivals(ms, img, start, v, f) {
		if counts(other) {
			return fmt.Sprintf("%s and %s define different functions @%s, and nothing tells which of them was compiled", v.path, other.path, f.Name)
		}
	}
	if s.full {
		return fmt.Sprintf("%s may be of code that was registered before: too many functions were registered to remember all", v.path)
	}
	for _, other := range s.objects[f.Name] {
		if other == img && v.owners[img] { // those that were registered later have no version that was written before
			return ""
		}
		sym, ok := other.Lookup(f.Name)
		if !ok || other == img || s.dumped(ms, other, sym.Addr, f.Name) {
			continue
		}
		// The process may write each version after it registers the code: then each object has that of the one before.
		if v.owners[img] || ms.ProvenanceOf(other, sym.Addr, f).Sure != sites.Contradicted {
			return fmt.Sprintf("%s may be of another @%s, which was registered and had no module then", v.path, f.Name)
		}
	}
	return ""
}

// dumped reports whether a version of the function was written just before an object was registered, and the object's code does not contradict it.
func (s *Dumps) dumped(ms *sites.Modules, img *object.Image, start machine.Addr, name string) bool {
	for _, v := range s.order {
		if f := sites.Emitted(v.module, name); v.owners[img] && f != nil && ms.ProvenanceOf(img, start, f).Sure != sites.Contradicted {
			return true
		}
	}
	return false
}

// rivals are the other versions of a function that the code does not contradict.
func (s *Dumps) rivals(ms *sites.Modules, img *object.Image, start machine.Addr, v *version, f *ir.Func) func(func(*version) bool) {
	return func(yield func(*version) bool) {
		for _, other := range s.order {
			g := sites.Emitted(other.module, f.Name)
			if other == v || g == nil {
				continue
			}
			if alike(f, g) {
				continue
			}
			if ms.ProvenanceOf(img, start, g).Sure != sites.Contradicted && !yield(other) {
				return
			}
		}
	}
}

// alike reports whether two functions are the same, and call the values of their sites the same.
func alike(f, g *ir.Func) bool {
	if what, comparable := ir.Difference(f, g); !comparable || what != "" {
		return false
	}
	a, err := siteNames(f)
	b, otherErr := siteNames(g)
	return err == nil && otherErr == nil && slices.Equal(a, b)
}

func siteNames(f *ir.Func) (list []string, err error) {
	all, err := sites.CompiledSites(f)
	for _, s := range all {
		for _, v := range s.Live {
			list = append(list, sites.NameOf(v))
		}
	}
	return list, err
}
