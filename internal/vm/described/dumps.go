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

// Dumps decides for which code a dumped module may name values, in a process that writes its IR to files while it runs. It holds the versions of
// modules that were read, and the objects that the process registered after it wrote each of them.
//
// If the process writes a module and then registers its code, the order of these events is the evidence. Otherwise, and for files that are older than
// the process, evidence in the code is needed ([sites.Provenance]). Files and images are hostile: the number of remembered functions is bounded.
type Dumps struct {
	live     *ir.LiveSet
	began    time.Time // start of the process; zero if it has not run when the first files are read
	versions map[*ir.Module]*version
	texts    map[uint64]*version
	order    []*version                 // all versions, in the order in which they were read
	objects  map[string][]*object.Image // objects that define a function, in the order of registration
	count    int                        // number of objects in the map
	full     bool
	seen     map[*object.Image]bool
}

// version is one content of a file.
type version struct {
	module   *ir.Module
	path     string
	modified time.Time
	named    bool // the user named its file, which existed before the process and still has this content
	old      bool // the content existed before the process started
	early    bool // the content existed before the process was watched
	open     bool // the content was written, and no object with its code has been registered since
	owners   map[*object.Image]bool
}

// maxFunctions bounds the number of functions of objects that a [Dumps] remembers.
const maxFunctions = 1 << 18

// NewDumps returns a set of the files that names select. have holds the modules that the caller has just read from these files. began is the start
// time of the process; zero if it has not run yet.
func NewDumps(names []string, have []*ir.Module, began time.Time) *Dumps {
	s := &Dumps{live: ir.NewLiveSet(names), began: began, versions: map[*ir.Module]*version{}, texts: map[uint64]*version{}}
	s.live.Have(have)
	s.Begin()
	return s
}

// Begin prepares the set for another process. It forgets the registered objects, and marks all versions read so far as older than the process, except
// for those that were written after the process started.
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

// add adds a version. It returns nil if its text was read before.
func (s *Dumps) add(v ir.FileVersion) *version {
	known := s.texts[v.Hash]
	for _, before := range s.order {
		if before.path == v.Path && before != known { // the user named the file, not its earlier content
			before.named = false
		}
	}
	if known != nil {
		known.open, known.modified = true, v.Modified // this content was written again
		return nil
	}
	is := &version{module: v.Module, path: v.Path, modified: v.Modified, open: true, owners: map[*object.Image]bool{}}
	s.versions[v.Module], s.texts[v.Hash] = is, is
	s.order = append(s.order, is)
	return is
}

// Registered reads the files that changed, and returns all modules so far. The image is code that the process has just registered or loaded; nil if
// unknown.
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
		for _, v := range of { // img owns each of several versions; evidence in its code decides later
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

// Refuses returns the reason why a module may not name the values of a function of an image although its sites match, or "". It also returns "" for a
// module that was not dumped.
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
		return fmt.Sprintf("%s was written before the process started, and it is not certain that the code of @%s was compiled from it; use --ir with the name of the file if it was", v.path, f.Name)
	case len(v.owners) > 0 || !v.early && p.Sure == sites.Open:
		return fmt.Sprintf("%s was not written just before the code of @%s was registered, so it is not certain that the code was compiled from it", v.path, f.Name)
	}
	return s.doubts(ms, img, start, v, f, func(other *version) bool { return !other.old })
}

// doubts returns "" if the order of events or the code proves that code was compiled from version v. Otherwise it returns the reason for doubt:
// another version that counts accepts may be the right one, or v may belong to other code.
func (s *Dumps) doubts(ms *sites.Modules, img *object.Image, start machine.Addr, v *version, f *ir.Func, counts func(*version) bool) string {
	for other := range s.rivals(ms, img, start, v, f) {
		if counts(other) {
			return fmt.Sprintf("%s and %s define different functions @%s, and it is unknown which of them was compiled", v.path, other.path, f.Name)
		}
	}
	if s.full {
		return fmt.Sprintf("%s may be the module of code that was registered earlier: too many functions were registered to remember all", v.path)
	}
	for _, other := range s.objects[f.Name] {
		if other == img && v.owners[img] { // only objects registered before img may own the version
			return ""
		}
		sym, ok := other.Lookup(f.Name)
		if !ok || other == img || s.dumped(ms, other, sym.Addr, f.Name) {
			continue
		}
		// The process may write each version after it registers the code: then each object would be matched with the previous version.
		if v.owners[img] || ms.ProvenanceOf(other, sym.Addr, f).Sure != sites.Contradicted {
			return fmt.Sprintf("%s may define another @%s, which was registered without a module", v.path, f.Name)
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

// rivals yields the other versions of a function that the code does not contradict.
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

// alike reports whether two functions are the same, including the names of the values at their sites.
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
