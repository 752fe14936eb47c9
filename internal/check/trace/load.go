package trace

import (
	"fmt"
	"slices"

	"example.com/reframe/deopt"
	"example.com/reframe/internal/llvm/sites"
	"example.com/reframe/internal/machine"
	"example.com/reframe/internal/machine/names"
	"example.com/reframe/internal/machine/object"
	"example.com/reframe/internal/progspace"
	"example.com/reframe/internal/vm/described"
	"example.com/reframe/ptrace"
)

// These symbols exist for debuggers ("Debugging with GDB", "JIT Compilation Interface"; glibc, elf/dl-debug.c): the function that is called when the
// list of registered objects has changed, the descriptor of that list, and the function that is called when the dynamic linker's list of libraries
// has changed.
const (
	registerCode  = "__jit_debug_register_code"
	jitDescriptor = "__jit_debug_descriptor"
	debugState    = "_dl_debug_state"
)

// loaded tracks the code that a process has loaded and registered, and the breakpoints in it.
type loaded struct {
	view    *deopt.View
	filters filters
	atSites bool // the sites of records get breakpoints, in addition to the functions that match a pattern in at
	at      []*names.Pattern
	matches []patternMatches          // for each pattern in at, the counts of functions that it matches
	entries func(string, uint64) bool // reports whether a record needs a breakpoint at the entry of its function
	hold    bool                      // stop all threads at each exit
	// reach is WatchCalls of [Options].
	reach bool
	warn  func(format string, args ...any)
	ask   described.Ask // returns an image's description of itself; nil: none is read
	asked map[*object.Image]bool

	modules map[*object.Image]*listing
	objects map[*ptrace.Entry]*listing
	given   map[*object.Image]*listing
	found   *listing // the result of the last scan
	known   int      // number of records in the loaded code
	// unwatched counts the selected records without a breakpoint, in all code loaded since the beginning.
	unwatched int
	excluded  excluded // records not selected, in all code loaded since the beginning

	places  map[machine.Addr]*place
	watches map[machine.Addr]bool // functions that are called when the loaded code changes; true for the one that a JIT calls to register objects
	changed map[machine.Addr]bool
}

// listing holds the watched places of one image.
type listing struct {
	points  []*Tracepoint
	watches []machine.Addr
	known   int
	refused []string // places that are not watched, with reasons
	// placed reports whether the stack maps have their final addresses. The dynamic linker relocates the maps of a module after it has mapped the
	// module.
	placed bool
	image  *object.Image // of a registered object
}

func newLoaded(o *Options, warn func(string, ...any)) *loaded {
	return &loaded{filters: append(filters{o.ExitFilter}, o.Also...), atSites: len(o.At) == 0 || o.Sites, at: o.At, matches: make([]patternMatches, len(o.At)), entries: o.Entries, hold: o.Full || o.Stop != nil || o.visitor != nil, reach: o.WatchCalls, warn: warn, ask: o.Describe}
}

// learn adds the modules and layouts that an image contains to the view. It is called before the image's records are read.
func (l *loaded) learn(where string, img *object.Image) {
	if l.ask != nil && img != nil && !l.asked[img] {
		l.asked[img] = true
		l.view.Learn(l.ask(where, img))
	}
}

// start initializes l for a target.
func (l *loaded) start(t *ptrace.Target, o deopt.Options) (err error) {
	l.view, err = deopt.New(t, o)
	if why := progspace.Unopened(t); why != "" {
		l.warn("%s", why)
	}
	for n := range l.matches {
		l.matches[n].now = 0
	}
	l.modules, l.objects, l.found, l.known, l.unwatched = map[*object.Image]*listing{}, map[*ptrace.Entry]*listing{}, nil, 0, 0
	l.given, l.asked = map[*object.Image]*listing{}, map[*object.Image]bool{}
	l.places, l.watches, l.changed = map[machine.Addr]*place{}, map[machine.Addr]bool{}, map[machine.Addr]bool{}
	return err
}

// update compares the code that is loaded now with the code before, and returns the breakpoints to set and to remove. fresh means that new objects
// were registered just now.
func (l *loaded) update(fresh bool) (insert []ptrace.Breakpoint, remove []machine.Addr, err error) {
	t := l.view.Target()
	if err := l.updateModules(t); err != nil {
		return nil, nil, err
	}
	if err := l.updateObjects(t, fresh); err != nil {
		return nil, nil, err
	}
	if err := l.updateGiven(t); err != nil {
		return nil, nil, err
	}
	if found := l.view.Space().Found; found != nil && l.found == nil {
		if l.found, err = l.list(found, false); err != nil {
			return nil, nil, err
		}
	}
	insert, remove = l.changes()
	return insert, remove, nil
}

// updateGiven lists the objects that the user gave. They were compared with memory when the target was first read, and do not change.
func (l *loaded) updateGiven(t *ptrace.Target) error {
	for _, img := range t.Given() {
		if l.given[img] != nil {
			continue
		}
		l.learn(img.Name, img)
		x, err := l.list(l.view.Space().OfObject(img), false)
		if err != nil {
			return err
		}
		l.warnRefused(x)
		l.given[img] = x
	}
	return nil
}

// updateModules drops the listings of unloaded modules, and makes those of new ones.
func (l *loaded) updateModules(t *ptrace.Target) error {
	present := map[*object.Image]bool{}
	for _, m := range t.Modules {
		present[m.Image] = l.modules[m.Image] == nil || !l.relocated(m, l.modules[m.Image])
	}
	for img, x := range l.modules {
		if !present[img] {
			delete(l.modules, img)
			l.drop(x)
		}
	}
	for _, m := range t.Modules {
		if m.Image == nil || l.modules[m.Image] != nil {
			continue
		}
		l.learn(m.Path, m.Image)
		x, err := l.module(m)
		if err != nil {
			return err
		}
		l.modules[m.Image] = x
	}
	return nil
}

// updateObjects drops the listings of unregistered objects, and makes those of new ones. A JIT may have registered 100,000 objects, and puts new ones
// at the head of its list. So the whole list is compared only if some objects are gone.
func (l *loaded) updateObjects(t *ptrace.Target, fresh bool) error {
	var added []*ptrace.Entry
	total := 0
	for _, r := range t.Registries {
		total += len(r.Entries)
		for _, e := range r.Entries {
			if l.objects[e] != nil {
				break
			}
			added = append(added, e)
		}
		if r.Broken != "" {
			l.warn("the list of registered JIT objects is corrupt: %s", r.Broken)
		}
	}
	if total != len(l.objects)+len(added) {
		added = l.forget(t)
	}
	for _, e := range slices.Backward(added) { // in the order of registration; before any records are read
		l.learn(fmt.Sprintf("the JIT object at %v", e.Addr), e.Image())
	}
	for _, e := range added {
		img := e.Image()
		x := &listing{}
		if img == nil {
			l.warn("the JIT object that is registered at %v cannot be used: %s", e.Addr, e.Bad)
		} else {
			var err error
			if x, err = l.list(l.view.Space().OfObject(img), fresh); err != nil {
				return err
			}
			x.image = img
			l.warnRefused(x)
		}
		l.objects[e] = x
	}
	return nil
}

// forget drops the objects that are no longer registered, and returns the new ones.
func (l *loaded) forget(t *ptrace.Target) (added []*ptrace.Entry) {
	present := map[*ptrace.Entry]bool{}
	for _, r := range t.Registries {
		for _, e := range r.Entries {
			if present[e] = true; l.objects[e] == nil {
				added = append(added, e)
			}
		}
	}
	for e, x := range l.objects {
		if !present[e] {
			delete(l.objects, e)
			delete(l.view.Space().Objects, x.image)
			delete(l.asked, x.image)
			l.drop(x)
		}
	}
	return added
}

// module lists the watched places of a module.
func (l *loaded) module(m *ptrace.Module) (*listing, error) {
	x := &listing{placed: true}
	if m.StackMaps != nil || len(l.at) > 0 {
		c := l.view.Space().OfModule(m)
		var err error
		if x, err = l.list(c, false); err != nil {
			return nil, err
		}
		if x.placed = inPlace(c); x.placed {
			l.warnRefused(x)
		}
	}
	if _, ok := m.Image.Lookup(jitDescriptor); ok {
		if sym, ok := m.Image.Lookup(registerCode); ok {
			l.watch(x, sym.Addr, true)
		} else {
			l.warn("%s has no %s: objects that its JIT registers from now on are not seen", m.Path, registerCode)
		}
	}
	if sym, ok := m.Image.Lookup(debugState); ok {
		l.watch(x, sym.Addr, false)
	}
	return x, nil
}

// warnRefused warns about places that are not watched.
func (l *loaded) warnRefused(x *listing) {
	for _, why := range x.refused {
		l.warn("%s", why)
	}
	x.refused = nil
}

// inPlace reports whether all functions of the code's maps lie in that code.
func inPlace(c *progspace.Objfile) bool {
	for _, m := range c.Maps {
		for i := range m.Functions {
			if c.Image.CodeAt(m.Functions[i].Addr) == nil {
				return false
			}
		}
	}
	return true
}

// relocated reports whether the stack maps of a module have changed since they were read, and if so reads them again.
func (l *loaded) relocated(m *ptrace.Module, x *listing) bool {
	if x.placed {
		return false
	}
	if !m.ReadStackMaps(l.view.Target()) {
		return false
	}
	delete(l.view.Space().Modules, m)
	return true
}

// list finds the exits in an object file.
func (l *loaded) list(c *progspace.Objfile, fresh bool) (*listing, error) {
	x := &listing{}
	if len(l.at) > 0 {
		l.symbols(x, c)
	}
	if !l.atSites {
		l.add(x)
		return x, nil
	}
	s := survey{view: l.view, filters: l.filters, entries: l.entries, fresh: fresh, watchCalls: l.reach}
	if err := s.addObject(c); err != nil {
		return nil, err
	}
	x.points, x.known, x.refused = append(x.points, s.points...), s.known, append(x.refused, s.misfits...)
	l.addExcluded(&s, c)
	if c.MapsErr != nil {
		x.refused = append(x.refused, "its stack map cannot be read: "+c.MapsErr.Error())
	}
	for _, why := range s.reasons {
		l.unwatched += s.refused[why]
		x.refused = append(x.refused, fmt.Sprintf("%s: %s skipped: %s", c.Name, sites.Plural(s.refused[why], "record"), why))
	}
	l.add(x)
	return x, nil
}

// countOf returns "1 record is" or "2 records are".
func countOf(n int, what string) string {
	if n == 1 {
		return fmt.Sprintf("1 %s is", what)
	}
	return fmt.Sprintf("%d %ss are", n, what)
}
