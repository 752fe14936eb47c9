package deopt_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/deopt"
	"example.com/reframe/internal/llvm/ir"
	"example.com/reframe/ptrace"
	"example.com/reframe/test/frametest"
	"example.com/reframe/test/livetest"
)

// framesOf captures a process and returns its view with the modules.
func framesOf(t *testing.T, p *livetest.Process, modules ...*ir.Module) (*deopt.View, error) {
	t.Helper()
	return framesWith(t, p, deopt.Options{Modules: modules})
}

func framesWith(t *testing.T, p *livetest.Process, o deopt.Options) (*deopt.View, error) {
	t.Helper()
	target, err := ptrace.Capture(p.PID, ptrace.Options{})
	require.NoError(t, err)
	t.Cleanup(target.Close)
	return deopt.Frames(target, o)
}

const twoFunctions = `
define i64 @first(i64 %a) noinline {
  %x = add i64 %a, 1
  %r = call i64 @wait(i64 1)
  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 1, i32 0, i64 %x)
  %s = add i64 %x, %r
  ret i64 %s
}
define i64 @work(i64 %a) noinline {
  %y = add i64 %a, 2
  %r = call i64 @first(i64 %y)
  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 1, i32 0, i64 %y, i64 %a)
  %s = add i64 %y, %r
  %s2 = add i64 %s, %a
  ret i64 %s2
}
`

// TestRecordOfTheFunctionBeside requires that a nearby record of another function is not used for the frame's function and not compared with the
// module, although both records have the same id.
func TestRecordOfTheFunctionBeside(t *testing.T) {
	for _, version := range []int{14, 19, 22} {
		p := livetest.Lli(t, version, program(t, prelude+twoFunctions+start), "mcjit")
		v := frametest.Look(t, p, false, frametest.Known(t, p))
		require.Equal(t, "102", frametest.Slot(t, frametest.One(t, v, "work"), "%y").Value)
		require.Equal(t, "103", frametest.Slot(t, frametest.One(t, v, "first"), "%x").Value)
	}
}

// TestOtherModules requires that a module other than the compiled one gives no names, or is rejected.
func TestOtherModules(t *testing.T) {
	p := livetest.Lli(t, 19, program(t, prelude+twoFunctions+start), "mcjit")
	for _, c := range []struct {
		name    string
		modules []string
		first   string // the name of @first's only slot
		note    string
	}{
		{"the one that was compiled", []string{twoFunctions}, "%x", ""},
		{"without the function, and with the id", []string{strings.ReplaceAll(twoFunctions, "@first", "@unrelated")}, "loc0",
			"no names: no given module defines @first"},
		{"two that fit", []string{twoFunctions, strings.ReplaceAll(twoFunctions, "%x", "%older")}, "loc0",
			"no names: 2 sites of m0.ll, m1.ll match this record, and they agree on 1 type of 1 value; give only the module that was compiled"},
		{"two, of which one fits", []string{strings.ReplaceAll(twoFunctions, "i64 %x)", "i64 %x, i64 %a)"), twoFunctions}, "%x", ""},
		{"an older one, whose record had more values", []string{strings.ReplaceAll(twoFunctions, "i64 %x)", "i64 %x, i64 %a)")}, "loc0",
			"no names: m0.ll is not what was compiled: record 1 of @first has 1 live values, but line "},
		{"no site of that id", []string{strings.ReplaceAll(twoFunctions, "i64 1, i32 0", "i64 2, i32 0")}, "loc0",
			"no names: @first of the module has no site with the id of record 1"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var modules []*ir.Module
			for n, text := range c.modules {
				modules = append(modules, frametest.ReadModule(t, "m"+string(rune('0'+n))+".ll", prelude+text))
			}
			v, err := framesOf(t, p, modules...)
			require.NoError(t, err)
			f := frametest.One(t, v, "first")
			require.Len(t, f.Slots, 1)
			require.Equal(t, c.first, f.Slots[0].Name)
			require.Contains(t, strings.Join(f.Notes, "\n"), c.note)
			require.EqualValues(t, "0x67", f.Slots[0].Hex)
		})
	}
}

// TestModuleThatFitsByChance requires that a module that fits the record of the frame, and no other record of the same function, is rejected.
func TestModuleThatFitsByChance(t *testing.T) {
	text := prelude + `
define i64 @work(i64 %a) noinline {
  %x = add i64 %a, 1
  %r = call i64 @wait(i64 1)
  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 1, i32 0, i64 %x)
  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 2, i32 8, i64 %x, i64 %r)
  %s = add i64 %x, %r
  ret i64 %s
}` + start
	p := livetest.Lli(t, 22, program(t, text), "mcjit")
	other := strings.NewReplacer("i64 1, i32 0, i64 %x", "i64 1, i32 0, i64 %a", "i64 2, i32 8, i64 %x, i64 %r", "i64 2, i32 8, i64 %x").Replace(text)
	v, err := framesOf(t, p, frametest.ReadModule(t, "other.ll", other))
	require.NoError(t, err)
	f := frametest.One(t, v, "work")
	require.Equal(t, "loc0", f.Slots[0].Name)
	require.Contains(t, strings.Join(f.Notes, "\n"), "no names: other.ll is not what was compiled: record 2 of @work has 2 live values, but line ")
}

// TestStatepointsByTheNumberThatIsCalled requires that a call through a register, which a movabs right before it loads, distinguishes statepoints
// with the same id. The callee has tail-called @wait, which the other statepoint calls and which is running. MCJIT compiles all calls like this
// (the large code model).
func TestStatepointsByTheNumberThatIsCalled(t *testing.T) {
	text := prelude + `
@left = global i64 0
define i64 @other(i64 %a) noinline {
  %r = musttail call i64 @wait(i64 %a)
  ret i64 %r
}
define i64 @work(i64 %a) noinline gc "statepoint-example" {
  %x = add i64 %a, 1
  %y = add i64 %a, 2
  %c = icmp eq i64 %a, 100
  br i1 %c, label %yes, label %no
yes:
  %t = call token (i64, i32, ptr, i32, i32, ...) @llvm.experimental.gc.statepoint.p0(i64 2882400000, i32 0, ptr elementtype(i64 (i64)) @other, i32 1, i32 0, i64 %a, i32 0, i32 0) [ "deopt"(i64 %x) ]
  store volatile i64 %x, ptr @left
  br label %done
no:
  %t2 = call token (i64, i32, ptr, i32, i32, ...) @llvm.experimental.gc.statepoint.p0(i64 2882400000, i32 0, ptr elementtype(i64 (i64)) @wait, i32 1, i32 0, i64 %a, i32 0, i32 0) [ "deopt"(i64 %y) ]
  store volatile i64 7, ptr @left
  br label %done
done:
  %p = phi i64 [ %x, %yes ], [ %y, %no ]
  ret i64 %p
}` + start
	for _, version := range []int{16, 19, 22} {
		p := livetest.Lli(t, version, livetest.Raw(t, text), "mcjit")
		f := frametest.One(t, frametest.Look(t, p, false, frametest.Known(t, p)), "work")
		require.Equal(t, "%x", f.Slots[0].Name)
		require.Equal(t, "101", f.Slots[0].Value)
	}
}

// TestStatepointsOfOneID requires that statepoints that share an id are distinguished by their callees, if the call names them.
func TestStatepointsOfOneID(t *testing.T) {
	text := prelude + `
define i64 @other(i64 %a) noinline {
  %r = call i64 @wait(i64 %a)
  ret i64 %r
}
define i64 @work(i64 %a) noinline gc "statepoint-example" {
  %x = add i64 %a, 1
  %y = add i64 %a, 2
  %c = icmp eq i64 %a, 100
  br i1 %c, label %yes, label %no
yes:
  %t = call token (i64, i32, ptr, i32, i32, ...) @llvm.experimental.gc.statepoint.p0(i64 2882400000, i32 0, ptr elementtype(i64 (i64)) @other, i32 1, i32 0, i64 %a, i32 0, i32 0) [ "deopt"(i64 %x) ]
  br label %done
no:
  %t2 = call token (i64, i32, ptr, i32, i32, ...) @llvm.experimental.gc.statepoint.p0(i64 2882400000, i32 0, ptr elementtype(i64 (i64)) CALLEE, i32 1, i32 0, i64 %a, i32 0, i32 0) [ "deopt"(i64 %y) ]
  br label %done
done:
  %p = phi i64 [ %x, %yes ], [ %y, %no ]
  ret i64 %p
}` + start
	for _, c := range []struct{ kind, callee, want string }{
		{"orc", "@wait", "%x"}, // direct calls
		{"orc", "@other", "loc0"},
		// movabs $wait,%rax; call *%rax, and %yes jumps to the call with @other in rax: @other runs, and @wait has no tail call.
		{"mcjit", "@wait", "%x"},
	} {
		p := livetest.Lli(t, 19, livetest.Raw(t, strings.ReplaceAll(text, "CALLEE", c.callee)), c.kind)
		f := frametest.One(t, frametest.Look(t, p, false, frametest.Known(t, p)), "work")
		require.Equal(t, c.want, f.Slots[0].Name, "%s %v", c.callee, f.Notes)
		require.EqualValues(t, "0x65", f.Slots[0].Hex)
		require.Equal(t, c.want == "loc0", len(f.Notes) > 0)
	}
}
