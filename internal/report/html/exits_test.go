package html

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/deopt"
	"example.com/reframe/internal/llvm/ir"
	"example.com/reframe/internal/report/explain"
	"example.com/reframe/internal/vm/layout"
	"example.com/reframe/internal/vm/vmlayout"
	"example.com/reframe/ptrace"
	"example.com/reframe/test/frametest"
	"example.com/reframe/test/livetest"
)

// exit describes the target of a page, a process or a core, and the files that describe its code.
type exit struct {
	name string
	view func(t *testing.T) *deopt.View
	// lit lists the elements that are highlighted while the mouse is over a value, besides those of every page.
	lit map[string][]string
	// via lists the elements that are marked as the register of the value's address, or as memory to which the value points.
	via map[string][]string
}

// exits has six kinds of exits: a failed guard whose layout gives the place at which it resumes; a call with gc pointers; a call in a patchpoint with
// values in registers, constants and lost values; a stackmap with vectors in registers; frames of a virtual machine with an object that was not
// allocated; and a core of another architecture.
var exits = []exit{
	{
		name: "deoptimize",
		view: func(t *testing.T) *deopt.View {
			p := livetest.Lli(t, 19, "deoptimize.ll", "mcjit")
			o := frametest.Known(t, p)
			text, err := os.ReadFile(livetest.Testdata(t, "programs", "deoptimize.layout.json"))
			require.NoError(t, err)
			l, err := layout.Parse("deoptimize.layout.json", text)
			require.NoError(t, err)
			o.Layouts = []*layout.Layout{l}
			return frametest.Look(t, p, true, o)
		},
		lit: map[string][]string{
			"#0":   {"values: #0", "IR: i32 3", "record: location 3: the constant 3 (deopt value 0) → #0"},
			"%i":   {"values: %i", "stack: %i", "stack: 1a 00 00 00 00 00 00 00", "IR: %i", "IR: %i = 26", "IR: i64 %i = 26", "record: location 4: 8 bytes of [rsp+16] (deopt value 1) → %i"},
			"%acc": {"values: %acc", "stack: %acc", "stack: 95 15 00 00 00 00 00 00", "IR: %acc", "IR: %acc = 5525", "IR: i64 %acc = 5525", "record: location 5: 8 bytes of [rsp+8] (deopt value 2) → %acc"},
			"%n":   {"values: %n", "stack: %n", "stack: e8 03 00 00 00 00 00 00", "IR: %n", "IR: %n = 1000", "IR: i64 %n = 1000", "record: location 6: 8 bytes of [rsp+0] (deopt value 3) → %n"},
		},
		via: map[string][]string{"#0": {}, "%i": {"registers: rsp"}},
	},
	{
		name: "statepoint",
		view: func(t *testing.T) *deopt.View {
			p := livetest.Lli(t, 19, "jit_sp.ll", "mcjit")
			return frametest.Look(t, p, true, frametest.Known(t, p))
		},
		lit: map[string][]string{
			// %y is in one half of a word; the other half belongs to no value.
			"%y": {"values: %y", "stack: %y", "stack: 33 00 00 00", "IR: %y", "IR: %y = 51", "IR: i32 %y = 51", "record: location 6: 4 bytes of [rsp+20] (deopt value 3) → %y"},
			"%c": {"values: %c", "stack: %c", "stack: fd", "IR: %c", "IR: %c = -3", "IR: i8 %c = -3", "record: location 8: 1 byte of [rsp+7] (deopt value 5) → %c"},
		},
		via: map[string][]string{"%y": {"registers: rsp"}},
	},
	{
		name: "patchpoint",
		view: func(t *testing.T) *deopt.View {
			p := livetest.Lli(t, 19, "jit_pp.ll", "mcjit")
			return frametest.Look(t, p, true, frametest.Known(t, p))
		},
		lit: map[string][]string{
			"%v2": {"values: %v2", "registers: 0000000000002904", "IR: %v2", "IR: %v2 = 10500", "IR: i64 %v2 = 10500", "record: location 1: 8 bytes of r13 → %v2"},
			"%v3": {"values: %v3", "registers: unavailable: rax is caller-saved and frame #1 does not preserve it", "IR: %v3", "IR: i64 %v3 = unavailable", "record: location 2: 8 bytes of rax → %v3"},
			"%d1": {"values: %d1", "registers: unavailable: xmm2 is caller-saved and frame #1 does not preserve it", "IR: %d1", "IR: double %d1 = unavailable", "record: location 10: 16 bytes of xmm2 → %d1"},
			"#14": {"values: #14", "IR: i64 -5", "record: location 14: the constant -5 → #14"},
			"#15": {"values: #15", "IR: i64 81985529216486895", "record: location 15: entry 0 of the constants, 81985529216486895 → #15", "record: constant 0: 81985529216486895, of location 15"},
		},
		via: map[string][]string{"%v2": {}, "%slot": {"stack: %slot", "stack: 92 10 00 00 00 00 00 00", "registers: rbp"}},
	},
	{
		name: "vectors",
		view: func(t *testing.T) *deopt.View {
			module := livetest.Module(t, vectorModule)
			p := livetest.Program(t, livetest.ModuleBinary(t, 19, module))
			p.AwaitPause(t)
			m, err := ir.ParseFile(module)
			require.NoError(t, err)
			return frametest.Look(t, p, true, deopt.Options{Modules: []*ir.Module{m}})
		},
		lit: map[string][]string{
			"%ints":    {"values: %ints", "registers: 01 00 00 00 02 00 00 00 03 00 00 00 fc ff ff ff", "IR: %ints", "IR: %ints = <1, 2, 3, -4>", "IR: <4 x i32> %ints = <1, 2, 3, -4>", "record: location 0: 16 bytes of xmm0 → %ints"},
			"%doubles": {"values: %doubles", "registers: 00 00 00 00 00 00 f8 3f 00 00 00 00 00 00 02 c0", "IR: %doubles", "IR: %doubles = <1.5, -2.25>", "IR: <2 x double> %doubles = <1.5, -2.25>", "record: location 1: 16 bytes of xmm1 → %doubles"},
			"#3":       {"values: #3", "IR: i64 81985529216486895", "record: location 3: entry 0 of the constants, 81985529216486895 → #3", "record: constant 0: 81985529216486895, of location 3"},
		},
		via: map[string][]string{"%ints": {}},
	},
	{
		name: "vm",
		view: func(t *testing.T) *deopt.View {
			p := livetest.Lli(t, 19, "vmsimple.ll", "mcjit")
			o := frametest.Known(t, p)
			l, err := vmlayout.Read("simple")
			require.NoError(t, err)
			o.VMs = []*vmlayout.Layout{l}
			return frametest.Look(t, p, true, o)
		},
		lit: map[string][]string{
			"%boxed": {"values: %boxed", "VM: local[0] f64 3.5", "stack: %boxed", "stack: 00 00 00 00 00 00 0d 40", "IR: %boxed", "IR: %boxed = 4615345193124626432", "IR: i64 %boxed = 4615345193124626432",
				"record: location 14: 8 bytes of [rsp+48] (deopt value 11) → %boxed"},
			// %n is on the operand stack of one frame, in a local of the other, and in the object.
			"%n": {"values: %n", "VM: local[0] i32 41", "stack: %n", "stack: 29 00 00 00", "IR: %n", "IR: %n = 41", "IR: i32 %n = 41", "record: location 7: 4 bytes of [rsp+4] (deopt value 4) → %n"},
		},
		via: map[string][]string{"%n": {"registers: rsp"}},
	},
	{
		name: "arm64 core",
		view: func(t *testing.T) *deopt.View {
			c := livetest.Crosses[0]
			require.Equal(t, "arm64", c.Arch)
			module := filepath.Join(t.TempDir(), "cross.ll")
			require.NoError(t, os.WriteFile(module, []byte(arm64Module), 0o600))
			program := c.Build(t, []string{"-static"}, livetest.Object(t, 19, module, "-mtriple=aarch64-linux-gnu", "-O2"))
			target, err := ptrace.OpenCore(c.Core(t, program), ptrace.CoreOptions{Exe: program})
			require.NoError(t, err)
			t.Cleanup(target.Close)
			m, err := ir.ParseFile(module)
			require.NoError(t, err)
			v, err := deopt.Frames(target, deopt.Options{Modules: []*ir.Module{m}})
			require.NoError(t, err)
			return v
		},
		lit: map[string][]string{
			"%a": {"values: %a", "registers: 0000000000000078", "IR: %a", "IR: %a = 120", "IR: i64 %a = 120", "record: location 0: 8 bytes of x21 → %a"},
			// A core of QEMU 7.2 lacks the vector registers.
			"%d": {"values: %d", "registers: unavailable: v8: not in the core", "IR: %d", "IR: double %d = unavailable", "record: location 3: 8 bytes of v8 → %d"},
		},
		via: map[string][]string{"%a": {}},
	},
}

// arm64Module aborts after a site, with values in callee-saved registers.
const arm64Module = `
target datalayout = "e-m:e-i8:8:32-i16:16:32-i64:64-i128:128-n32:64-S128-Fn32"
target triple = "aarch64-linux-gnu"
declare void @llvm.experimental.stackmap(i64, i32, ...)
declare void @abort()
@scale = dso_local global i64 3
define dso_local void @stop() noinline {
  call void @abort()
  ret void
}
define dso_local i64 @work(i64 %n, i32 %small, double %d) noinline {
  %s = load volatile i64, ptr @scale
  %a = mul i64 %n, %s
  call void @stop()
  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 7, i32 0, i64 %a, i64 %n, i32 %small, double %d, i64 -5)
  %x = sext i32 %small to i64
  %t = add i64 %a, %n
  %u = add i64 %t, %x
  ret i64 %u
}
define dso_local i32 @main() {
  %s = load volatile i64, ptr @scale
  %n = add i64 %s, 37
  %r = call i64 @work(i64 %n, i32 -2, double 2.5)
  %t = trunc i64 %r to i32
  ret i32 %t
}
`

// vectorModule blocks in pause(2), which it calls by a syscall instruction in inline assembly: a system call preserves vector registers. The record
// is after that instruction.
const vectorModule = `
target datalayout = "e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-f80:128-n8:16:32:64-S128"
target triple = "x86_64-pc-linux-gnu"
declare void @llvm.experimental.stackmap(i64, i32, ...)
@ready = private constant [6 x i8] c"ready\0A"
@i = global <4 x i32> <i32 1, i32 2, i32 3, i32 -4>
@d = global <2 x double> <double 1.5, double -2.25>
@f = global float 0.5
define void @work() noinline {
  %ints = load volatile <4 x i32>, ptr @i
  %doubles = load volatile <2 x double>, ptr @d
  %f = load volatile float, ptr @f
  %w = call i64 asm sideeffect "syscall", "={rax},{rax},{rdi},{rsi},{rdx},~{rcx},~{r11},~{memory}"(i64 1, i64 1, ptr @ready, i64 6)
  %p = call i64 asm sideeffect "syscall", "={rax},{rax},~{rcx},~{r11},~{memory}"(i64 34)
  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 12, i32 0, <4 x i32> %ints, <2 x double> %doubles, float %f, i64 81985529216486895)
  ret void
}
define i32 @main() {
  call void @work()
  ret i32 0
}
`

// drawn makes the page for a question about a view, and writes it to a file.
func drawn(t *testing.T, v *deopt.View, q explain.Question) (p *Page, file string) {
	t.Helper()
	e, err := explain.Explain(v, q)
	require.NoError(t, err)
	p = Of(v, e, nil)
	return p, written(t, p)
}

// written writes a page to a file and returns its path.
func written(t *testing.T, p *Page) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "page.html")
	f, err := os.Create(file)
	require.NoError(t, err)
	require.NoError(t, p.Write(f))
	require.NoError(t, f.Close())
	return file
}

// shown saves a picture in the directory that the variable PICTURES names, so that a person can look at it.
func shown(t *testing.T, name string, png []byte) {
	t.Helper()
	if dir := os.Getenv("PICTURES"); dir != "" {
		require.NoError(t, os.WriteFile(filepath.Join(dir, fmt.Sprintf("%s.png", name)), png, 0o600))
	}
}
