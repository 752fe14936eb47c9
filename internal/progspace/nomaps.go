package progspace

import (
	"cmp"
	"errors"
	"fmt"
	"strings"

	"example.com/reframe/internal/machine/object"
	"example.com/reframe/ptrace"
)

// WhyNoMaps returns the reason why a target has no stack map, and advice for the host of the JIT.
func WhyNoMaps(t *ptrace.Target) string {
	registered, others := 0, 0 // numbers of all objects, and of those that may have a stack map
	for _, r := range t.Registries {
		registered += len(r.Entries)
		for _, e := range r.Entries {
			// An object without an image was not read, because no thread is in its code.
			if img := e.Image(); img != nil && img.Section(object.StackMapSection) != nil || img == nil && e.Bad == "" {
				others++
			}
		}
	}
	trouble := RegistryTrouble(t)
	if t.Provider == ptrace.FromCore { // the notes of a debugger do not explain missing stack maps
		trouble = append(trouble, t.Notes...)
	}
	trouble = append(trouble, ModuleTrouble(t)...)
	if why := Unopened(t); why != "" {
		trouble = append(trouble, why)
	}
	switch {
	case len(trouble) > 0:
		return strings.Join(trouble, "; ")
	case Nameless(t) && len(t.Given()) == 0:
		return WhyNameless
	case registered == 0 && len(t.Given()) > 0:
		return fmt.Sprintf("no object that was given (of %d) has a section %s", len(t.Given()), object.StackMapSection)
	case registered > 0 && others == registered:
		return fmt.Sprintf("no thread is in the code of its %d registered JIT objects; %s lists their records", registered, listing(t))
	case others > 0:
		return fmt.Sprintf("of its %d registered JIT objects %d have no section %s, and no thread is in the code of the others; %s lists their records",
			registered, registered-others, object.StackMapSection, listing(t))
	case registered > 0:
		return fmt.Sprintf("no registered JIT object (of %d) that was read has a section %s; "+
			"code without a stackmap, patchpoint or statepoint has none, and a linker that removes unreferenced sections may drop it", registered, object.StackMapSection)
	case t.Unlisted():
		return "its JIT registered no object, and the debugger does not list its memory, so it was not searched for a loaded stack map; give the objects that it compiled, --object FILE@ADDR"
	case t.ScanCut: // a search is made only if there is code outside of files
		return "its JIT registered no object, and its memory is too large to be searched to the end for a loaded stack map; " + howToRegister
	case t.HasJITCode():
		return "its JIT registered no object, and memory holds no loaded stack map; " + howToRegister
	}
	return fmt.Sprintf("it has no code outside of its files, and none of those has a section %s", object.StackMapSection)
}

// listing returns the command that lists the records of all objects of a target.
func listing(t *ptrace.Target) string {
	switch t.Provider {
	case ptrace.FromCore:
		return "reframe maps --core " + t.Core
	case ptrace.FromGDB, ptrace.FromLLDB: // the maps command does not exist in these debuggers
		return "reframe record -o FILE, and then reframe maps --core FILE"
	case ptrace.FromRemote, ptrace.FromDelve:
		return fmt.Sprintf("reframe maps --%s %s", t.Provider, t.Debugger)
	}
	return fmt.Sprintf("reframe maps -p %d", t.PID)
}

// Unopened returns a note about files of a process that could not be opened for lack of descriptors or memory, or "" if there are none.
func Unopened(t *ptrace.Target) string {
	var first *ptrace.Module
	unopened := 0
	for _, m := range t.Modules {
		if m.Unopened {
			first = cmp.Or(first, m)
			unopened++
		}
	}
	if unopened == 0 {
		return ""
	}
	return fmt.Sprintf("%d of its %d files could not be opened: %s: %s; their contents, and objects that are registered in them, are unknown",
		unopened, len(t.Modules), first.Path, first.Why)
}

// Nameless reports whether a target is a core without the names of its files. QEMU writes such cores for a guest of another architecture.
func Nameless(t *ptrace.Target) bool { return t.Core != "" && len(t.Modules) == 0 }

// RegistryTrouble returns the errors in the lists of registered objects.
func RegistryTrouble(t *ptrace.Target) (trouble []string) {
	registered := 0
	var bad []string
	for _, r := range t.Registries {
		registered += len(r.Entries)
		if r.Broken != "" {
			trouble = append(trouble, "its list of registered JIT objects is corrupt: "+r.Broken)
		}
		for n, e := range r.Entries {
			if e.Bad != "" {
				bad = append(bad, fmt.Sprintf("object %d: %s", n+1, e.Bad))
			}
		}
	}
	if len(bad) > 0 {
		const shown = 3 // a broken JIT may have registered thousands of objects
		trouble = append(trouble, fmt.Sprintf("%d of its %d registered JIT objects are corrupt: %s", len(bad), registered, strings.Join(bad[:min(shown, len(bad))], "; ")))
	}
	return trouble
}

// ModuleTrouble returns the modules whose stack maps cannot be read, or may be from another file than the mapped one.
func ModuleTrouble(t *ptrace.Target) (trouble []string) {
	for _, m := range t.Modules {
		switch {
		case m.MapsWhy != "":
			trouble = append(trouble, m.Path+": "+m.MapsWhy)
		case m.StackMaps != nil && m.Unverified != "":
			trouble = append(trouble, m.Path+": "+m.Unverified)
		}
	}
	return trouble
}

// ErrNoMaps reports a file or process without a stack map.
var ErrNoMaps = errors.New("no stack map")

// WhyNameless is the reason why a core without a list of files has no code.
const WhyNameless = "the core names none of its files; --exe says which program it is of"

// howToRegister is advice for the host of a JIT.
const howToRegister = "the host must register what it compiles: " +
	"LLVMOrcLLJITEnableDebugSupport (LLVM 19 and later), or a RuntimeDyld object layer with LLVMCreateGDBRegistrationListener (LLVM 14); " +
	"or give the objects that it compiled, --object FILE"
