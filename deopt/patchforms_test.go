package deopt_test

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/deopt"
	"example.com/reframe/deopt/frame"
	"example.com/reframe/internal/llvm/ir"
	"example.com/reframe/ptrace"
	"example.com/reframe/test/frametest"
	"example.com/reframe/test/livetest"
)

// patchForm is a form of patch by which testdata/patchforms/shadows.c overwrites a shadow.
type patchForm struct {
	name    string
	unknown string // values that the written code has destroyed
}

var shadowForms = []patchForm{
	{"call", ""}, {"callthunk", ""}, {"pushcall", ""}, {"subcall", ""}, {"shortjmp", ""}, {"data", ""},
	{"cfi", ""}, {"cfi_push", ""}, {"cfi_frame", ""}, {"handler", ""}, {"cfithunk", ""}, {"slotthunk", ""}, {"jmpslot", ""},
	{"pushregs", ""}, {"pushjmp", ""}, {"pushjmpcfi", ""}, {"movjmp", ""}, {"jcc", ""}, {"common", ""},
	{"switches", ""}, {"frame", ""}, {"pushret", ""}, {"aligns", ""}, {"pushf", ""}, {"getpc", ""}, {"loops", ""}, {"callsfirst", ""},
	{"saverbx", ""}, {"stores", ""}, {"popsrbx", "rbx"}, {"movrbx", "rbx"}, {"branches", "rbx"},
	{"int3", ""}, {"int3late", ""}, {"ud2late", ""}, {"restored", ""},
}

var patchedValues = regexp.MustCompile(`p=(\w+) x=(\d+) b=(\d+) y=(\d+)`)

// patchFormsOf runs shadows.c.
func patchFormsOf(t *testing.T, version int, args ...string) (*livetest.Process, deopt.Options) {
	t.Helper()
	program := livetest.Testdata(t, "..", "deopt", "testdata", "patchforms", "shadows.ll")
	object := livetest.PICObject(t, version, program, "-O2")
	p := livetest.C(t, "../deopt/testdata/patchforms/shadows.c", []string{"-fno-omit-frame-pointer", object, "-Wl,-z,notext"}, args...)
	p.AwaitPause(t)
	p.IR = livetest.IR(t, version, program)
	return p, frametest.Known(t, p)
}

// functionsOf returns the functions of a thread's frames, innermost first.
func functionsOf(t *testing.T, v *deopt.View) (names []string) {
	t.Helper()
	require.Len(t, v.Threads, 1)
	for _, f := range v.Threads[0].Frames {
		names = append(names, f.Function)
	}
	return names
}

// TestCoreOfATrapInAShadow requires the record and all values in the core of a process that died of a trap in a shadow.
func TestCoreOfATrapInAShadow(t *testing.T) {
	for _, version := range []int{14, 19, 22} {
		program := livetest.Testdata(t, "..", "deopt", "testdata", "patchforms", "shadows.ll")
		object := livetest.PICObject(t, version, program, "-O2")
		binary := livetest.CBinary(t, "../deopt/testdata/patchforms/shadows.c", "-fno-omit-frame-pointer", object, "-Wl,-z,notext")
		m, err := ir.ParseFile(livetest.IR(t, version, program))
		require.NoError(t, err)
		for _, form := range []string{"int3dies", "ud2dies", "hltdies"} {
			output, path, can := livetest.DiedCore(t, binary, form)
			if !can {
				t.Skip("the kernel writes no core into the working directory of a process")
			}
			core, err := ptrace.OpenCore(path, ptrace.CoreOptions{})
			require.NoError(t, err)
			v, err := deopt.Frames(core, deopt.Options{Modules: []*ir.Module{m}})
			require.NoError(t, err)
			require.Equal(t, []string{"f", "main"}, functionsOf(t, v)[:2], form)
			hasValues(t, output, v.Threads[0].Frames[0], "")
			core.Close()
		}
	}
}

// holdsValues compares the slots of f with the program's output. Values in registers that the written code has changed may be missing.
func holdsValues(t *testing.T, p *livetest.Process, f *deopt.Frame, unknown string) {
	t.Helper()
	hasValues(t, p.Output(), f, unknown)
}

// hasValues does the same as holdsValues, with the output as a string.
func hasValues(t *testing.T, output string, f *deopt.Frame, unknown string) {
	t.Helper()
	require.NotNil(t, f.Record)
	require.EqualValues(t, 77, f.Record.ID)
	want := patchedValues.FindStringSubmatch(output)
	require.Len(t, want, 5)
	for n, name := range []string{"%p", "%x", "%b", "%y"} {
		at := slices.IndexFunc(f.Slots, func(s frame.Slot) bool { return s.Name == name })
		require.GreaterOrEqual(t, at, 0, name)
		s := f.Slots[at]
		if s.Status != frame.OK && unknown != "" && strings.Contains(fmt.Sprint(s.Location), unknown) {
			require.Contains(t, s.Reason, unknown+" was changed by the code")
			continue
		}
		require.Equal(t, frame.OK, s.Status, "%s: %s", name, s.Reason)
		require.Equal(t, want[n+1], s.Value, name)
	}
}

// TestPatchForms requires the right stack for each form of patch in the shadow of a stackmap. The code that the patch reaches has each kind of
// unwind information. Each function must be on the stack once. The frame of f must have its record, with the values that the program printed.
func TestPatchForms(t *testing.T) {
	livetest.Slow(t)
	for n, form := range shadowForms {
		for k, version := range []int{14, 19, 22} {
			if livetest.Out(3, n+2*k) {
				continue
			}
			t.Run(fmt.Sprintf("%d %s", version, form.name), func(t *testing.T) {
				p, known := patchFormsOf(t, version, form.name)
				v := frametest.Look(t, p, false, known)
				names := functionsOf(t, v)
				at := slices.Index(names, "f")
				require.Greater(t, at, 0, "%v %s", names, v.Threads[0].End.Reason)
				require.Equal(t, "main", names[at+1])
				require.NotContains(t, names[at+1:], "f")
				require.NotContains(t, names[:at], "main")
				require.True(t, v.Threads[0].End.Complete, v.Threads[0].End.Reason)
				if form.name != "restored" { // the code of f no longer contains the patch
					holdsValues(t, p, v.Threads[0].Frames[at], form.unknown)
				}
			})
		}
	}
}

// TestSharedStub requires that a thread in a stub does not get a frame of g if another function led to the stub. The shadow of g jumps to the same
// stub. If the stack shows how the thread reached the stub, no frame may be a guess.
func TestSharedStub(t *testing.T) {
	livetest.Slow(t)
	for n, form := range []string{"pushregs", "pushjmp", "slotthunk", "jcc", "call", "pushcall", "callthunk", "native", "main", "leaf", "callswitches", "pushid", "stale", "callsdeep", "zeroid"} {
		for k, version := range []int{14, 19, 22} {
			if livetest.Out(3, n+2*k) {
				continue
			}
			t.Run(fmt.Sprintf("%d %s", version, form), func(t *testing.T) {
				p, known := patchFormsOf(t, version, "shared", form)
				v := frametest.Look(t, p, false, known)
				require.NotContains(t, functionsOf(t, v), "g")
				require.Contains(t, functionsOf(t, v), "main", v.Threads[0].End.Reason)
				if form == "pushid" || form == "stale" || form == "callsdeep" {
					require.Contains(t, functionsOf(t, v), "f", v.Threads[0].End.Reason)
				}
				for _, f := range v.Threads[0].Frames {
					if form == "main" || form == "leaf" || form == "callswitches" || form == "pushid" || form == "zeroid" {
						require.Empty(t, f.Guess(), f.Function)
					}
					if f.Record != nil && form != "native" {
						require.Equal(t, "f", f.Function)
						holdsValues(t, p, f, "")
					}
				}
			})
		}
	}
}

// TestOverwrittenReturnAddress requires that the stack ends at a return address that the program has overwritten, without invented frames.
func TestOverwrittenReturnAddress(t *testing.T) {
	p, known := patchFormsOf(t, 19, "returnedwait")
	v := frametest.Look(t, p, false, known)
	names := functionsOf(t, v)
	require.Equal(t, "runtime", names[len(names)-1])
	require.Regexp(t, `^cut short: frame #\d+ returns to 0x[0-9a-f]+, which follows no call$`, v.Threads[0].End.Reason)

	p, known = patchFormsOf(t, 19, "returnedbase")
	v = frametest.Look(t, p, false, known)
	names = functionsOf(t, v)
	require.Equal(t, "runtime", names[len(names)-1], "it seems to return to the base of a stack")
	require.Regexp(t, `^cut short: frame #\d+ returns to 0x[0-9a-f]+, which follows no call, and the stack continues above it$`, v.Threads[0].End.Reason)

	p, known = patchFormsOf(t, 19, "returned")
	v = frametest.Look(t, p, false, known)
	names = functionsOf(t, v)
	require.Equal(t, "cfi_return", names[len(names)-1], "its CFI leads to a word of the frame of f")
	require.False(t, v.Threads[0].End.Complete)

	p, known = patchFormsOf(t, 19, "returneddeclared")
	v = frametest.Look(t, p, false, known)
	names = functionsOf(t, v)
	require.Equal(t, "cfi_base", names[len(names)-1], "its CFI says that it has no caller")
	require.Regexp(t, `^cut short: frame #\d+: its CFI says that it has no return address, and the stack continues above it$`, v.Threads[0].End.Reason)

	p, known = patchFormsOf(t, 19, "returnedbare")
	v = frametest.Look(t, p, false, known)
	names = functionsOf(t, v)
	require.Equal(t, "bare_return", names[len(names)-1], "it has no CFI")
	require.Regexp(t, `^cut short: frame #\d+ was entered by a return to 0x[0-9a-f]+, which follows no call$`, v.Threads[0].End.Reason)
}
