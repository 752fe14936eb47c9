package clitest

import (
	"bytes"
	"debug/elf"
	bits "encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/reframe/deopt/stackmap"
	"example.com/reframe/test/livetest"
	"example.com/reframe/test/tinyvmtest"
)

// StoringModule returns deoptimize.ll with a @sum that also stores a number, and a main that prints it and the result of @sum_opt.
func StoringModule(t *testing.T) string {
	t.Helper()
	source, err := os.ReadFile(livetest.Testdata(t, "programs", "deoptimize.ll"))
	require.NoError(t, err)
	text := string(source)
	for _, r := range [][2]string{
		{"%r = call i64 @sum_opt(i64 1000, i64 5000)\n", "%r = call i64 @sum_opt(i64 1000, i64 5000)\n  %m = load i64, ptr @mark\n" +
			"  %p = call i32 (ptr, ...) @printf(ptr @text, i64 %r, i64 %m)\n"},
		// Two blocks have this name; the second is in @sum.
		{"done:\n  ret i64 %acc1\n}\ndefine i32", "done:\n  store i64 770, ptr @mark\n  ret i64 %acc1\n}\ndefine i32"},
	} {
		require.Equal(t, 1, strings.Count(text, r[0]), r[0])
		text = strings.Replace(text, r[0], r[1], 1)
	}
	text += "declare i32 @printf(ptr, ...)\n@mark = global i64 5, align 64\n@text = private constant [13 x i8] c\"sum %ld %ld\\0A\\00\"\n"
	path := filepath.Join(t.TempDir(), "storing.ll")
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

// WithChangedMap returns a copy of an object with a changed stack map.
func WithChangedMap(t *testing.T, object string, change func(*stackmap.Blob)) string {
	t.Helper()
	f, err := elf.Open(object)
	require.NoError(t, err)
	defer f.Close()
	size := int(f.Section(".llvm_stackmaps").Size)
	return ChangedObject(t, object, "wrong.o", func(b []byte, at int) []byte {
		s, err := stackmap.Parse(b[at:at+size], stackmap.Options{Order: bits.LittleEndian, Dialect: stackmap.V3})
		require.NoError(t, err)
		blob := s.Maps[0].Blob()
		change(blob)
		section, err := stackmap.AppendBlob(nil, bits.LittleEndian, blob)
		require.NoError(t, err)
		require.Len(t, section, size)
		return append(append(bytes.Clone(b[:at]), section...), b[at+size:]...)
	})
}

// WrongTick returns tick.ll with a stack map that gives %x the location of %y.
func WrongTick(t *testing.T) (object, module string) {
	object, module = TickObject(t)
	return WithChangedMap(t, object, func(b *stackmap.Blob) {
		l := b.Functions[0].Records[0].Locations
		l[2] = l[3]
	}), module
}

// TickState holds the values of tick.ll's loop.
type TickState struct{ I, Acc, X, Y uint64 }

// Next returns the values after one iteration.
func (s TickState) Next() TickState {
	acc := s.Acc*31 + s.X
	return TickState{s.I + 1, acc, s.X ^ s.Acc>>7, (s.Y + s.I) ^ acc}
}

// Result returns the result of the loop.
func (s TickState) Result() int64 { return s.ResultOf(1000) }

// ResultOf returns the result of a loop with the given number of iterations.
func (s TickState) ResultOf(loop int) int64 {
	for s = s.Next(); s.I < uint64(loop); {
		s = s.Next()
	}
	return int64((s.Acc + s.X) ^ s.Y)
}

// TickAt returns the values at the n-th exit of one thread, counted from 1.
func TickAt(n int) TickState {
	s := TickState{0, uint64((n - 1) / 1000), 12345, 1}
	for range (n - 1) % 1000 {
		s = s.Next()
	}
	return s
}

// RunSuggestion runs the command that a report of a difference suggests, and returns its result.
func RunSuggestion(t *testing.T, text string) Result {
	t.Helper()
	lines := Suggestions(text)
	require.NotEmpty(t, lines, text)
	return RunInShell(t, lines[0])
}

// TinyVM returns the path of the virtual machine tinyvm, the path of one of its programs, and the command that interprets frames of that program.
func TinyVM(t *testing.T) (binary, program, serve string) {
	t.Helper()
	binary, program = tinyvmtest.Binary(t, 19), livetest.Testdata(t, "..", "examples", "tinyvm", "points.tvm")
	return binary, program, binary + " --serve " + program
}

// ModuleWithSites returns the path of the module of a C or C++ program, with inserted sites.
func ModuleWithSites(t *testing.T, source string) string {
	t.Helper()
	sites := filepath.Join(t.TempDir(), "sites.ll")
	r := Run(t, "instrument", livetest.CModule(t, 19, []string{"-O1"}, source), "-o", sites)
	require.Equal(t, 0, r.Code, r.Stderr)
	return sites
}

// TickObject returns an object with a stackmap of four values that runs 1000 times per round, and its module.
func TickObject(t *testing.T) (object, module string) {
	t.Helper()
	return livetest.PICObject(t, 19, "tick.ll", "-O2"), livetest.IR(t, 19, "tick.ll")
}

// OutputUntraced runs a command without a tracer and returns its output.
func OutputUntraced(t *testing.T, command []string) string {
	t.Helper()
	out, err := exec.Command(command[0], command[1:]...).Output()
	require.NoError(t, err)
	return string(out)
}

var TickExitLine = regexp.MustCompile(`^\d+\.\d{6}  \d+( obj_host)?  tick\+0x[0-9a-f]+  record 1 stackmap  %i=(\d+) %acc=(-?\d+) %x=(\d+) %y=(-?\d+)$`)

// WaitTraced waits until a tracer has stopped a process at least once. Before, the process must be waiting in the kernel.
func WaitTraced(t *testing.T, p *livetest.Process) {
	t.Helper()
	require.Eventually(t, func() bool {
		status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.PID))
		return err == nil && !strings.Contains(string(status), "TracerPid:\t0\n") && p.Disturbed()
	}, livetest.Patience, time.Millisecond)
}

// AllocasModule records the addresses of three allocas, and waits in a call that has no record.
const AllocasModule = livetest.Prelude + `
declare void @llvm.lifetime.start.p0(i64, ptr)
declare void @llvm.lifetime.end.p0(i64, ptr)
define void @fill(ptr %p) noinline {
  store i64 77, ptr %p
  ret void
}
define i64 @work(i64 %s) noinline {
entry:
  %count = alloca i64
  %ended = alloca i64
  store i64 -5, ptr %count
  call void @llvm.lifetime.start.p0(i64 8, ptr %ended)
  call void @fill(ptr %ended)
  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 1, i32 8, ptr %ended, ptr %count)
  call void @llvm.lifetime.end.p0(i64 8, ptr %ended)
  %w = call i64 @wait(i64 %s)
  call void @fill(ptr %count)
  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 2, i32 8, i64 %s, ptr %count)
  %r = load i64, ptr %count
  ret i64 %r
}
` + livetest.Start

// DerivedPointersModule waits in @inner, called by @outer. Each of the two functions has pointers to 24 bytes after and 24 bytes before the start of
// an object at 0x10000. Their offsets are not constant, so LLVM cannot recompute the pointers after the call and records pairs of base and derived
// pointer.
const DerivedPointersModule = `
declare i32 @pause()
declare i32 @puts(ptr)
declare token @llvm.experimental.gc.statepoint.p0(i64, i32, ptr, i32, i32, ...)
declare ptr addrspace(1) @llvm.experimental.gc.relocate.p1(token, i32, i32)
@msg = private constant [6 x i8] c"ready\00"
@object = global i64 65536
@away = global i64 24
@sum = global i8 0

define void @wait() noinline {
  %m = getelementptr [6 x i8], ptr @msg, i64 0, i64 0
  %x = call i32 @puts(ptr %m)
  br label %l
l:
  %r = call i32 @pause()
  br label %l
}

define void @inner() noinline gc "statepoint-example" {
  %a = load volatile i64, ptr @object
  %n = load volatile i64, ptr @away
  %o = inttoptr i64 %a to ptr addrspace(1)
  %at = getelementptr i8, ptr addrspace(1) %o, i64 %n
  %m = sub i64 0, %n
  %below = getelementptr i8, ptr addrspace(1) %o, i64 %m
  %t = call token (i64, i32, ptr, i32, i32, ...) @llvm.experimental.gc.statepoint.p0(i64 2882400000, i32 0, ptr elementtype(void ()) @wait, i32 0, i32 0, i32 0, i32 0) [ "deopt"(i32 1, ptr addrspace(1) %at, ptr addrspace(1) %below), "gc-live"(ptr addrspace(1) %o, ptr addrspace(1) %at, ptr addrspace(1) %below) ]
  %at2 = call ptr addrspace(1) @llvm.experimental.gc.relocate.p1(token %t, i32 0, i32 1)
  %below2 = call ptr addrspace(1) @llvm.experimental.gc.relocate.p1(token %t, i32 0, i32 2)
  store volatile i8 1, ptr addrspace(1) %at2
  store volatile i8 2, ptr addrspace(1) %below2
  ret void
}

define void @outer() noinline gc "statepoint-example" {
  %a = load volatile i64, ptr @object
  %n = load volatile i64, ptr @away
  %boxed = load volatile i64, ptr @object
  %p = inttoptr i64 %a to ptr addrspace(1)
  %f = mul i64 %a, 3
  %far = inttoptr i64 %f to ptr addrspace(2)
  %at = getelementptr i8, ptr addrspace(1) %p, i64 %n
  %t = call token (i64, i32, ptr, i32, i32, ...) @llvm.experimental.gc.statepoint.p0(i64 2882400000, i32 0, ptr elementtype(void ()) @inner, i32 0, i32 0, i32 0, i32 0) [ "deopt"(ptr addrspace(1) %p, ptr addrspace(1) %at, i64 %n, i64 %boxed, ptr addrspace(2) %far, ptr addrspace(1) null), "gc-live"(ptr addrspace(1) %p, ptr addrspace(1) %at) ]
  %p2 = call ptr addrspace(1) @llvm.experimental.gc.relocate.p1(token %t, i32 0, i32 0)
  %at2 = call ptr addrspace(1) @llvm.experimental.gc.relocate.p1(token %t, i32 0, i32 1)
  store volatile i8 1, ptr addrspace(1) %p2
  store volatile i8 2, ptr addrspace(1) %at2
  ret void
}

define i32 @main() {
  call void @outer()
  ret i32 0
}
`

// AnsweringInterpreter returns the command of an interpreter that writes its request to the file handed, prints the given lines, and answers a resume
// request with a result.
func AnsweringInterpreter(t *testing.T, result string, lines ...string) (command, handed string) {
	t.Helper()
	handed = filepath.Join(t.TempDir(), "handed")
	script := `read l; echo '{"jsonrpc":"2.0","id":1,"result":{"protocol":"reframe.vm/1","name":"sh"}}'; head -n 1 > ` + handed + "\n"
	for _, line := range lines {
		script += "echo '" + line + "'\n"
		if strings.Contains(line, `"id"`) {
			script += "read l\n"
		}
	}
	return "sh " + TempFile(t, "answering.sh", script+`echo '{"jsonrpc":"2.0","id":2,"result":`+result+"}'\nread l\n"), handed
}

const Returned42 = `{"returned":{"type":"i64","bits":"0xffff00000000002a","text":"42"},"steps":3,"tail":["Foo.main @ 11 RETURN"]}`

// StartCalling starts vmframes.ll as a program that prints ready and then waits in a call from Point.norm, which is inlined into main.
func StartCalling(t *testing.T) *livetest.Process {
	t.Helper()
	text, err := os.ReadFile(livetest.Testdata(t, "programs", "vmframes.ll"))
	require.NoError(t, err)
	const says = `c"pid %d stopped in Point.norm\0A\00"`
	require.Contains(t, string(text), says)
	module := strings.NewReplacer(says, `c"ready\0A`+strings.Repeat(`\00`, 24)+`"`, "declare i32 @sleep(i32)", "declare i32 @pause()", "@sleep(i32 1000)", "@pause()").Replace(string(text))
	return livetest.Lli(t, 19, TempFile(t, "calling.ll", module), "orc")
}
