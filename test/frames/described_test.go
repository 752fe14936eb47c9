package frames_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/require"

	"example.com/reframe/test/clitest"
	"example.com/reframe/test/livetest"
)

// describing returns vmsimple.ll with a layout and IR in sections of the module.
func describing(t *testing.T, layout string, ir []byte) string {
	t.Helper()
	text, err := os.ReadFile(livetest.Testdata(t, "programs", "vmsimple.ll"))
	require.NoError(t, err)
	var b strings.Builder
	b.Write(text)
	var used []string
	for _, s := range []struct {
		symbol, section string
		data            []byte
	}{{"__reframe_layout", ".reframe.layout", append([]byte(layout), 0)}, {"__reframe_ir", ".reframe.ir", ir}} {
		if len(s.data) == 0 {
			continue
		}
		fmt.Fprintf(&b, "@%s = constant [%d x i8] c\"", s.symbol, len(s.data))
		for _, c := range s.data {
			fmt.Fprintf(&b, "\\%02x", c)
		}
		fmt.Fprintf(&b, "\", section \"%s\"\n", s.section)
		used = append(used, "ptr @"+s.symbol)
	}
	fmt.Fprintf(&b, "@llvm.used = appending global [%d x ptr] [%s], section \"llvm.metadata\"\n", len(used), strings.Join(used, ", "))
	return clitest.TempFile(t, "described.ll", b.String())
}

// TestSelfDescription requires that a JIT which describes itself needs no flag: IR and layout are taken from the registered object.
func TestSelfDescription(t *testing.T) {
	livetest.Slow(t)
	t.Parallel()
	module, err := os.ReadFile(livetest.IR(t, 19, "vmsimple.ll"))
	require.NoError(t, err)
	packer, err := zstd.NewWriter(nil)
	require.NoError(t, err)
	own, err := os.ReadFile("../../internal/vm/vmlayout/layouts/simple.star")
	require.NoError(t, err)
	for name, c := range map[string]struct {
		layout string
		ir     []byte
		says   string
	}{
		"by its name":     {"simple", module, "layout simple (JIT object 1), 1 module"},
		"compressed":      {"simple", packer.EncodeAll(module, nil), "layout simple (JIT object 1), 1 module"},
		"by its own text": {string(own), module, "layout of JIT object 1, 1 module"},
	} {
		t.Run(name, func(t *testing.T) {
			p := livetest.Lli(t, 19, describing(t, c.layout, c.ir), "orc")
			r := clitest.Run(t, "frames", "-p", clitest.PID(p))
			require.Equal(t, 0, r.Code, r.Stderr)
			require.Contains(t, r.Stderr, "note: using the layout and IR found in the process: "+c.says+" (--no-self-description to ignore them)\n")
			for _, line := range []string{
				"      vm Foo.bar @ 17, reexecute\n           local[0]         f64    3.5                    slot 11\n           local[1]                object 4\n           local[2]         double 3.5                    slot 15\n",
				"           fuel             i64    700                    slot 23\n",
				"         inlined into Foo.main @ 9, in call\n           local[0]         i32    41                     slot 4\n           local[1]                dead\n",
				"         object 4, not allocated: Point\n           +8               i32    41                     slot 28\n           +16                     object 4\n",
			} {
				require.Contains(t, r.Stdout, line)
			}
			require.Contains(t, clitest.Run(t, "frames", "-p", clitest.PID(p), "--vm").Stdout, "  0    Foo.bar @ 17, reexecute  (frame #2, being deoptimized)\n  1    Foo.main @ 9, in call  (frame #2, being deoptimized)\n")
			r = clitest.Run(t, "frames", "-p", clitest.PID(p), "--no-self-description")
			require.NotContains(t, r.Stdout+r.Stderr, "Foo.bar")
			require.NotContains(t, r.Stderr, "found in the process")
		})
	}
}

// TestSelfDescriptionBesideAModule requires that --ir does not disable the description in the process, if the given module has another function.
func TestSelfDescriptionBesideAModule(t *testing.T) {
	t.Parallel()
	module, err := os.ReadFile(livetest.IR(t, 19, "vmsimple.ll"))
	require.NoError(t, err)
	other := clitest.TempFile(t, "other.ll", "declare void @llvm.experimental.stackmap(i64, i32, ...)\ndefine i64 @other(i64 %a) {\n  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 9, i32 0, i64 %a)\n  ret i64 %a\n}\n")
	p := livetest.Lli(t, 19, describing(t, "simple", module), "orc")
	r := clitest.Run(t, "frames", "-p", clitest.PID(p), "--ir", other)
	require.Equal(t, 0, r.Code, r.Stderr)
	require.Contains(t, r.Stderr, "note: using the layout and IR found in the process: ")
	require.Contains(t, r.Stdout, "      vm Foo.bar @ 17, reexecute\n           local[0]         f64    3.5                    slot 11\n")
}

// TestHostileSelfDescription requires that, whatever an untrusted description in a target contains, each error is one line and the rest of the output
// is shown.
func TestHostileSelfDescription(t *testing.T) {
	livetest.Slow(t)
	t.Parallel()
	module, err := os.ReadFile(livetest.IR(t, 19, "vmsimple.ll"))
	require.NoError(t, err)
	for name, c := range map[string]struct {
		layout string
		ir     []byte
		says   string // a line of standard error, or a part of the output
	}{
		"no layout at all":   {"\x1b[2Jnot a program", module, "its own description: JIT object 1, layout:1:1: unexpected input character '\\x1b'"},
		"an endless loop":    {"while True: pass", module, "its own description: JIT object 1, layout:1:1: it did not end after 2000000 steps"},
		"a list of 8 GiB":    {"x = [0] * (1 << 29)\n", module, "its own description: the layout's process ended; its memory is limited to 256 MiB"},
		"doubled text":       {"x = 'x'\nfor i in range(40): x += x\n", module, "its own description: the layout's process ended; its memory is limited to 256 MiB"},
		"doubled at an exit": {"def frames(site):\n  x = 'x'\n  for i in range(40):\n    x += x\n", module, "no VM frames: JIT object 1, layout: record 2882400000 of @compiled: the layout's process ended; its memory is limited to 256 MiB"},
		"endless at an exit": {"def frames(site):\n  while True: pass\n", module, "no VM frames: JIT object 1, layout:1:1: record 2882400000 of @compiled: it did not end after 2000000 steps"},
		"endless recursion":  {"def frames(site):\n  return frames(site)\n", module, "no VM frames: JIT object 1, layout:2:10: record 2882400000 of @compiled: function frames called recursively"},
		"endless names":      {"def frames(site):\n  skip(site.operands)\n  return frame(7, 1)\ndef method_name(m):\n  while True: pass\n", module, "the name of its method: JIT object 1, layout:4:1: it did not end after 2000000 steps"},
		"memory of others":   {"def frames(site):\n  skip(site.operands)\n  return frame(7, 1)\ndef method_name(m):\n  return read_string(1 << 62)\n", module, "the name of its method: JIT object 1, layout:5:21: read_string: 32 bytes at 0x4000000000000000"},
		"hostile IR":         {"simple", []byte("define void @f( {{{{ \x00\xff"), "its own description: JIT object 1, .reframe.ir:1:"},
		"a bomb":             {"simple", bomb(t), "its own description: JIT object 1, .reframe.ir: "},
	} {
		t.Run(name, func(t *testing.T) {
			p := livetest.Lli(t, 19, describing(t, c.layout, c.ir), "orc")
			r := clitest.Run(t, "frames", "-p", clitest.PID(p))
			require.Contains(t, clitest.JoinedLines(r.Stdout+r.Stderr), c.says)
			require.Contains(t, r.Stdout, "  #2   jit     compiled+0x")
			require.Contains(t, r.Stdout, "native  _start+0x")
			if strings.Contains(c.says, "VM frames") || strings.Contains(c.says, "its method") {
				require.Equal(t, 1, r.Code, "what a layout was to name is not there")
			}
			require.NotContains(t, r.Stdout+r.Stderr, "\x1b")
		})
	}
}

// bomb is a GiB of zeros, compressed.
func bomb(t *testing.T) []byte {
	t.Helper()
	var out strings.Builder
	w, err := zstd.NewWriter(&out)
	require.NoError(t, err)
	zeros := make([]byte, 1<<20)
	for range 1 << 10 {
		_, err := w.Write(zeros)
		require.NoError(t, err)
	}
	require.NoError(t, w.Close())
	return []byte(out.String())
}

// TestMapsCheckVM requires that maps --check compares the records of an object with a layout without a module, because the layout needs only
// constants of the records.
func TestMapsCheckVM(t *testing.T) {
	livetest.Slow(t)
	t.Parallel()
	for _, version := range []int{14, 19, 22} {
		object := livetest.PICObject(t, version, "vmsimple.ll", "-O2")
		r := clitest.Run(t, "maps", object, "--check", "--layout", "simple")
		require.Equal(t, 0, r.Code, r.Stdout)
		require.Contains(t, r.Stdout, "  kept    a layout of a virtual machine reads every record  1\n")
		// The record gives one field fewer than it has, so the tag of the second field is left over.
		wrong := livetest.PICObject(t, version, clitest.EditedCopy(t, livetest.Testdata(t, "programs", "vmsimple.ll"), "i32 2,", "i32 1,"), "-O2")
		r = clitest.Run(t, "maps", wrong, "--check", "--layout", "simple")
		require.Equal(t, 1, r.Code, r.Stdout)
		require.Contains(t, clitest.JoinedLines(r.Stdout), "BROKEN a layout of a virtual machine reads every record 1 of 1 because tags")
		require.Contains(t, clitest.JoinedLines(r.Stdout), "compiled: simple:")
		require.Contains(t, clitest.JoinedLines(r.Stdout), "record 2882400000 of @compiled: fail: operand 29 is no tag: 6")
		r = clitest.Run(t, "maps", object, "--check", "--layout", "simple", "--json")
		clitest.RequireValid(t, "check.schema.json", r.Stdout)
	}
	r := clitest.Run(t, "lint", livetest.Testdata(t, "programs", "vmsimple.ll"), "--layout", "Simple")
	require.Equal(t, 2, r.Code)
	require.Contains(t, r.Stderr, "open Simple: no such file or directory; the builtin layouts are ark, jeandle, jllvm, simple, wanco")
}

// TestVMInTracesAndScripts requires that values in frames of a virtual machine can be used in --stop-at, and that the first script of a core expects
// them.
func TestVMInTracesAndScripts(t *testing.T) {
	livetest.Slow(t)
	t.Parallel()
	// This program ends at the place where the original waits.
	module := livetest.IR(t, 19, clitest.EditedCopy(t, clitest.EditedCopy(t, livetest.Testdata(t, "programs", "vmsimple.ll"),
		"  %r = call i32 @pause()\n  br label %l\n", "  call void @exit(i32 0)\n  unreachable\n"), "declare i32 @pause()", "declare void @exit(i32)"))
	program := livetest.LliWords(t, 19)
	dir := t.TempDir()
	core, script := filepath.Join(dir, "exit.core"), filepath.Join(dir, "exit.txtar")
	traced := func(args ...string) clitest.Result {
		return clitest.Run(t, append(append(append([]string{"trace", "--ir", module, "--layout", "simple"}, args...), "--"), append(program, module)...)...)
	}
	r := traced("--stop-at", "local[0] > 3 && local[0] < 4 && caller[1].local[0] == 41 && object[4].8 == stack[1]")
	require.Contains(t, r.Stderr, "vm Foo.bar @ 17, reexecute")
	require.Contains(t, r.Stderr, "local[0] > 3")
	r = traced("--stop-at", "local[0] > 4")
	require.NotContains(t, r.Stderr, "Foo.bar")
	r = traced("--limit", "1")
	require.Contains(t, clitest.JoinedLines(r.Stderr), "Foo.bar @ 17, reexecute local[0]=3.5 local[1]=object(4) local[2]=3.5 stack[0]=0x")
	require.Contains(t, clitest.JoinedLines(r.Stderr), " stack[1]=41 fuel=700 in Foo.main @ 9, in call ")
	r = traced("--limit", "1", "--json")
	exit := strings.SplitN(r.Stderr, "\n", 2)[0]
	clitest.RequireValid(t, "trace.schema.json", exit)
	require.Contains(t, exit, `"vm":{"layout":"simple","frames":[{"method":"Foo.bar","position":17,"resume":"reexecute","locals":[{"index":0,"type":"f64","value":"3.5","hex":"0x400d000000000000","status":"ok","slot":11},{"index":1,"object":4}`)

	r = clitest.Run(t, append([]string{"record", "--ir", module, "--layout", "simple", "-o", core, "--script", script, "--"}, append(program, module)...)...)
	require.Equal(t, 0, r.Code, r.Stderr)
	text, err := os.ReadFile(script)
	require.NoError(t, err)
	for _, line := range []string{"expect method Foo.bar\n", "expect position 17\n", "expect local[0] = 3.5\n", "expect local[1] object 4\n", "expect caller[1].local[1] dead\n", "expect object[4].8 = 41\n"} {
		require.Contains(t, string(text), line)
	}
	r = clitest.Run(t, "replay", script)
	require.Equal(t, 0, r.Code, r.Stdout+r.Stderr)
	for from, c := range map[string][2]string{"position 17": {"position 18", "position 17, not 18"}, "local[0] = 3.5": {"local[0] = 3.25", "local[0] is 3.5"}, "object 4": {"object 5", "is object 4, not object 5"}} {
		require.NoError(t, os.WriteFile(script, []byte(strings.Replace(string(text), from, c[0], 1)), 0o600))
		r = clitest.Run(t, "replay", script)
		require.NotEqual(t, 0, r.Code)
		require.Contains(t, r.Stdout+r.Stderr, c[1])
	}
}

// TestLayoutOfEachMethod requires that each of many objects can contain its own layout, and that a record is read with the layout of its own object.
// Every layout of this test accepts the records of all objects.
func TestLayoutOfEachMethod(t *testing.T) {
	t.Parallel()
	const methods = 40
	var flags []string
	for n := range methods {
		layout := fmt.Sprintf("def frames(site):\n    f = frame(\"method%d\", 7, \"in-call\")\n    for k, v in enumerate(site.operands):\n        f.local(k, v.as_type(\"i64\"))\n    return f\n", n)
		next := fmt.Sprintf("f%d", n+1)
		if n == methods-1 {
			next = "take_over"
		}
		text := fmt.Sprintf(`declare i64 @%s(i64)
@layout = internal constant [%d x i8] c"%s\00", section ".reframe.layout"
@llvm.used = appending global [1 x ptr] [ptr @layout], section "llvm.metadata"
define i64 @f%d(i64 %%x) noinline gc "statepoint-example" {
  %%y = add i64 %%x, 1
  %%r = call i64 @%s(i64 %%y) [ "deopt"(i64 %%x) ]
  %%z = add i64 %%r, %%x
  ret i64 %%z
}
`, next, len(layout)+1, strings.NewReplacer("\n", `\0a`, `"`, `\22`).Replace(layout), n, next)
		flags = append(flags, "--extra-module="+livetest.IR(t, 19, clitest.TempFile(t, fmt.Sprintf("method%d.ll", n), text)))
	}
	p := livetest.Lli(t, 19, clitest.TempFile(t, "start.ll", `declare i64 @f0(i64)
declare i32 @pause()
declare i32 @puts(ptr)
@msg = private constant [6 x i8] c"ready\00"
define i64 @take_over(i64 %x) noinline {
  %a = call i32 @puts(ptr @msg)
  br label %l
l:
  %r = call i32 @pause()
  br label %l
}
define i32 @main() {
  %r = call i64 @f0(i64 100)
  ret i32 0
}
`), "orc", flags...)
	r := clitest.Run(t, "frames", "-p", clitest.PID(p))
	require.Equal(t, 0, r.Code, r.Stderr)
	require.Contains(t, r.Stderr, ", 32 more layouts (--no-self-description to ignore them)\n")
	for n := range methods {
		require.Regexp(t, fmt.Sprintf(`\n      vm method%d @ 7, in call\n           local\[0\] +i64 +%d `, n, 100+n), r.Stdout)
	}
}

// TestMomentOfFrame requires that a layout gets the moment of a frame. It can then omit a frame that has called the VM's run time to be deoptimized;
// --vm marks such a frame.
func TestMomentOfFrame(t *testing.T) {
	t.Parallel()
	own, err := os.ReadFile("../../internal/vm/vmlayout/layouts/simple.star")
	require.NoError(t, err)
	p := livetest.Lli(t, 19, "vmsimple.ll", "orc")
	for _, moment := range []string{"in-call", "before"} {
		text := strings.Replace(string(own), "def frames(site):", "def all_frames(site):", 1) + "\ndef frames(site):\n    return None if site.moment == \"" + moment + "\" else all_frames(site)\n"
		r := clitest.Run(t, "frames", "-p", clitest.PID(p), "--vm", "--ir", p.IR, "--layout", clitest.TempFile(t, "moment.star", text))
		if moment == "in-call" {
			require.NotContains(t, r.Stdout, "Foo.bar")
			continue
		}
		require.Contains(t, r.Stdout, "  0    Foo.bar @ 17, reexecute  (frame #2, being deoptimized)\n")
	}
}
