package resume_test

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/test/clitest"
	"example.com/reframe/test/livetest"
	"example.com/reframe/test/tinyvmtest"
)

// leaving is a program whose function @compiled, of the given type, exits to Foo.bar @ 17 with @heap and 41 on the operand stack. Its records follow
// the layout `simple`.
type leaving struct {
	typ, suffix string // return type of @compiled, and its spelling in the name of an intrinsic
	more        string // further operands
	print       string // code of main that computes %i, the i64 to print, from the result %r
}

var leavingI64 = leaving{"i64", "i64", "", "%i = add i64 %r, 0"}

// start starts the program. Its main prints the result of @compiled, and then the first word of @heap. If the program gets SIGUSR1 while it is at the
// exit, it prints the word and ends.
func (l leaving) start(t *testing.T) *livetest.Process {
	t.Helper()
	set, returned := "%r = ", "ret "+l.typ+" %r"
	if l.typ == "void" {
		set, returned = "", "ret void"
	}
	return livetest.Lli(t, 19, livetest.Raw(t, `
declare i32 @pause()
declare i32 @puts(ptr)
declare i32 @printf(ptr, ...)
declare ptr @signal(i32, ptr)
declare void @exit(i32)
declare `+l.typ+` @llvm.experimental.deoptimize.`+l.suffix+`(...)
@ready = private constant [6 x i8] c"ready\00"
@format = private constant [24 x i8] c"returned %ld, heap %ld\0A\00"
@name.bar = private constant [8 x i8] c"Foo.bar\00"
@name.Point = private constant [6 x i8] c"Point\00"
@heap = global [4 x i64] [i64 1, i64 2, i64 3, i64 4]
define void @handle(i32 %n) {
  ret void
}
define `+l.typ+` @__llvm_deoptimize() noinline {
  %s = call ptr @signal(i32 10, ptr @handle)
  %x = call i32 @puts(ptr @ready)
  %y = call i32 @pause()
  %h = load volatile i64, ptr @heap
  %p = call i32 (ptr, ...) @printf(ptr @format, i64 -1, i64 %h)
  call void @exit(i32 0)
  unreachable
}
define `+l.typ+` @compiled(i32 %n) noinline gc "statepoint-example" {
  `+set+`call `+l.typ+` (...) @llvm.experimental.deoptimize.`+l.suffix+`(i32 1) [ "deopt"(i64 4294967296, ptr @name.bar, i32 17,
    i64 12918456320, ptr @heap, i64 12884901889, i32 %n`+l.more+`) ]
  `+returned+`
}
define i32 @main() {
  `+set+`call `+l.typ+` @compiled(i32 41)
  `+l.print+`
  %h = load volatile i64, ptr @heap
  %p = call i32 (ptr, ...) @printf(ptr @format, i64 %i, i64 %h)
  ret i32 0
}
`), "orc")
}

// heapOf returns the address of @heap, which it reads from the request to the interpreter.
func heapOf(t *testing.T, p *livetest.Process) string {
	t.Helper()
	command, handed := clitest.AnsweringInterpreter(t, `{"unsupported":"it only looks"}`)
	r := clitest.Run(t, "resume", "-p", clitest.PID(p), "--ir", p.IR, "--layout", "simple", "--with", command)
	require.Equal(t, 2, r.Code, r.Stderr)
	text, err := os.ReadFile(handed)
	require.NoError(t, err)
	_, rest, ok := strings.Cut(string(text), `"type":"ref","value":"`)
	require.True(t, ok, string(text))
	at, _, _ := strings.Cut(rest, `"`)
	return at
}

// writes returns a request that writes 770 to an address.
func writes(at string) string {
	return `{"jsonrpc":"2.0","id":1,"method":"memory.write","params":{"ranges":[{"at":"` + at + `","data":"0203000000000000"}]}}`
}

func committed(p *livetest.Process, command string, more ...string) []string {
	return append([]string{"resume", "-p", clitest.PID(p), "--ir", p.IR, "--layout", "simple", "--with", command, "--commit"}, more...)
}

// TestResumeWithCommit requires that a dry run reports what a commit then writes, as text and as JSON. The program must continue with the
// interpreter's stores and result, and end normally.
func TestResumeWithCommit(t *testing.T) {
	t.Parallel()
	p := leavingI64.start(t)
	command, _ := clitest.AnsweringInterpreter(t, `{"returned":{"type":"i64","bits":"0xfffffffffffffff9","text":"-7"},"steps":3,"locked":false}`, writes(heapOf(t, p)))
	r := clitest.Run(t, committed(p, command, "--dry-run")...)
	require.Equal(t, 0, r.Code, r.Stderr)
	require.Regexp(t, `(?m)^Foo.bar returned i64 -7, says sh after 3 instructions
it would write: 2 bytes in 1 place, 9 registers
  0x[0-9a-f]+  0100 -> 0203
  rax   0x[0-9a-f]+ -> 0xfffffffffffffff9
(  (rbx|rbp|r1[2-5])   0x[0-9a-f]+ (-> 0x[0-9a-f]+|unchanged)
|  rsp   0x[0-9a-f]+ -> 0x[0-9a-f]+
){7}  rip   0x[0-9a-f]+ -> 0x[0-9a-f]+
result i64 -7 in rax
frames #0 to #\d+ are discarded, and the thread continues at main\+0x[0-9a-f]+, frame #\d+
\z`, r.Stdout)
	require.Regexp(t, `^pid \d+ was stopped for \d+\.\d+ ms and is running again\n\z`, r.Stderr)

	r = clitest.Run(t, committed(p, command, "--dry-run", "--json")...)
	require.Equal(t, 0, r.Code, r.Stderr)
	clitest.RequireValid(t, "resume.schema.json", r.Stdout)
	dry := r.Object(t)["committed"].(map[string]any)
	clitest.RequireUnharmed(t, p)
	p.AwaitPause(t)

	r = clitest.Run(t, committed(p, command, "--json")...)
	require.Equal(t, 0, r.Code, r.Stderr)
	clitest.RequireValid(t, "resume.schema.json", r.Stdout)
	done := r.Object(t)["committed"].(map[string]any)
	require.NoError(t, p.Wait())
	require.Equal(t, "ready\nreturned -7, heap 770\n", p.Output())
	require.Equal(t, []any{false, true}, []any{dry["written"], done["written"]})
	dry["written"] = true
	require.Equal(t, dry, done)
	require.Equal(t, json.Number("2"), done["bytes"])
}

// TestResumeWithCommitsResults requires that a result is stored in the place in which the caller expects the return type of the native function.
func TestResumeWithCommitsResults(t *testing.T) {
	livetest.Slow(t)
	t.Parallel()
	for _, c := range []struct {
		name   string
		of     leaving
		answer string
		want   int64
	}{
		{"i32", leaving{"i32", "i32", "", "%i = sext i32 %r to i64"}, `{"returned":{"type":"i32","bits":"0xfffffff9"},"locked":false}`, -7},
		{"u8", leaving{"i8", "i8", "", "%i = zext i8 %r to i64"}, `{"returned":{"type":"u8","bits":"0xf9"},"locked":false}`, 249},
		{"f64", leaving{"double", "f64", "", "%i = fptosi double %r to i64"}, `{"returned":{"type":"f64","bits":"0xc01e000000000000"},"locked":false}`, -7}, // -7.5
		{"f32", leaving{"float", "f32", "", "%i = fptosi float %r to i64"}, `{"returned":{"type":"f32","bits":"0x40f00000"},"locked":false}`, 7},
		{"ref", leaving{"ptr", "p0", "", "%i = ptrtoint ptr %r to i64"}, `{"returned":{"type":"ref","bits":"0x7000"},"locked":false}`, 0x7000},
		{"null", leaving{"ptr", "p0", "", "%i = ptrtoint ptr %r to i64"}, `{"returned":{"type":"null","bits":"0x0"},"locked":false}`, 0},
		{"nothing", leaving{"void", "isVoid", "", "%i = add i64 3, 4"}, `{"returned":null,"locked":false}`, 7},
		{"an exception", leavingI64, `{"threw":{"text":"NullPointerException"},"returned":{"type":"i64","bits":"0x7"},"locked":false}`, 7},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			p := c.of.start(t)
			command, _ := clitest.AnsweringInterpreter(t, c.answer)
			r := clitest.Run(t, committed(p, command)...)
			require.Equal(t, 0, r.Code, r.Stderr)
			require.NoError(t, p.Wait())
			require.Equal(t, fmt.Sprintf("ready\nreturned %d, heap 1\n", c.want), p.Output())
		})
	}
}

// TestResumeWithCommitRefuses requires that a refused commit reports the reason and leaves the process unchanged, without the interpreter's stores to
// @heap.
func TestResumeWithCommitRefuses(t *testing.T) {
	livetest.Slow(t)
	t.Parallel()
	p := leavingI64.start(t)
	heap := heapOf(t, p)
	for _, c := range []struct {
		answer string
		asks   []string
		says   string
	}{
		{`{"returned":{"type":"i64","bits":"0x7"},"locked":false}`, []string{`{"jsonrpc":"2.0","id":2,"method":"memory.allocate","params":{"size":8}}`}, "sh allocated 8 bytes, which do not exist in the process: only stores to the process's memory can be written back"},
		{`{"returned":{"type":"i64","bits":"0x7"},"locked":false}`, []string{`{"jsonrpc":"2.0","method":"output","params":{"text":"7\\n"}}`},
			"sh printed, which would be lost: only stores to the process's memory can be written back"},
		{`{"returned":{"type":"i64","bits":"0x7"},"locked":true}`, nil, "sh took a lock, or holds one that was not held before"},
		{`{"returned":{"type":"i64","bits":"0x7"}}`, nil, `sh does not report that it took no lock ("locked":false)`},
		{`{"threw":{"text":"NullPointerException"},"locked":false}`, nil, "Foo.bar ended with an exception (NullPointerException), and sh does not report what compiled code returns in this case"},
		{`{"unsupported":"no bytecode 0xba at Foo.bar @ 17"}`, nil, "sh cannot continue: no bytecode 0xba at Foo.bar @ 17"},
		{`{"unsupported":"this\\nthat"}`, nil, "sh cannot continue: this that"},
		{`{"malformed":"Foo.bar @ 17 has no operand stack"}`, nil, "sh reports malformed frames: Foo.bar @ 17 has no operand stack"},
		{`{"returned":{"type":"f64","bits":"0x7"},"locked":false}`, nil, "the interpreter returned a value of type f64, but @compiled returns one of type i64"},
		{`{"returned":{"type":"i32","bits":"0x7"},"locked":false}`, nil, "the interpreter returned a value of type i32, but @compiled returns one of type i64"},
		{`{"returned":null,"locked":false}`, nil, "the interpreter returned nothing, but @compiled returns a value of type i64"},
		{`{"returned":{"type":"i64","bits":"0x10000000000000007"},"locked":false}`, nil, `returned: "0x10000000000000007" does not fit in 64 bits`},
		{`{}`, nil, "it has none of returned, threw, unsupported, malformed"},
		{`{"returned":{"type":"i64","bits":"0x7"},"locked":0}`, nil, "cannot unmarshal number into Go struct field answer.locked of type bool"},
	} {
		command, _ := clitest.AnsweringInterpreter(t, c.answer, append([]string{writes(heap)}, c.asks...)...)
		clitest.Run(t, committed(p, command)...).FailsEmpty(t, 2, "reframe: nothing is committed: ", c.says+" (process "+clitest.PID(p)+" was stopped for ")
		clitest.RequireUnharmed(t, p)
		p.AwaitPause(t)
	}
	const greets = `read l; echo '{"jsonrpc":"2.0","id":1,"result":{"protocol":"reframe.vm/1"}}'; `
	clitest.Run(t, committed(p, greets+"read l; exit 9")...).FailsEmpty(t, 2, "reframe: nothing is committed: ", "its answer to resume (id 2): it has ended (exit status 9) (process "+clitest.PID(p)+" was stopped for ")
	clitest.Run(t, committed(p, "true", "--result", "seven")...).FailsEmpty(t, 64, `--result: expected an integer, pointer or float, got "seven"`)
	clitest.Run(t, committed(p, "true", "--result", "7")...).FailsEmpty(t, 2, "nothing is committed: frame #2, compiled: --result cannot be used: its innermost VM frame has no pending call")
	command, _ := clitest.AnsweringInterpreter(t, clitest.Returned42)
	clitest.Run(t, "resume", "-p", clitest.PID(p), "--layout", "simple", "--with", command, "--commit").FailsEmpty(t, 2, "reframe: nothing is committed: no given module defines the function of frame #", ", compiled, so the type that its caller expects is unknown; give it with --ir")
	p.Signal(t, syscall.SIGUSR1)
	require.NoError(t, p.Wait())
	require.Equal(t, "ready\nreturned -1, heap 1\n", p.Output())
}

// TestResumeWithCommitRefusesBefore requires that a commit is refused before an interpreter is started if the result needs more than stores, or
// cannot be returned in a register.
func TestResumeWithCommitRefusesBefore(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		of   leaving
		says string
	}{
		{"a lock that was left out", leaving{"i64", "i64", ", i64 17213423617, ptr @heap", leavingI64.print},
			"compiled code left out a lock of Foo.bar: the interpreter takes it, and only stores to the process's memory can be written back"},
		{"an object", leaving{"i64", "i64", ", i64 12935233538, i32 4, i64 21474836484, ptr @name.Point, i32 1, i64 25769803784, i32 %n", leavingI64.print},
			"object 4 (Point) does not exist in the process: the interpreter allocates it, and only stores to the process's memory can be written back"},
		{"two registers", leaving{"{ i64, i64 }", "sl_i64i64s", "", "%i = extractvalue { i64, i64 } %r, 0"}, "@compiled returns a value of type { i64, i64 }, which takes more than one register"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			p := c.of.start(t)
			started := t.TempDir() + "/started"
			clitest.Run(t, committed(p, "touch "+started)...).FailsEmpty(t, 2, "reframe: nothing is committed: "+c.says)
			require.NoFileExists(t, started)
			p.AwaitPause(t)
			p.Signal(t, syscall.SIGUSR1)
			require.NoError(t, p.Wait())
			require.Equal(t, "ready\nreturned -1, heap 1\n", p.Output())
		})
	}
}

// TestResumeWithCommitCallers requires that the interpreter runs one or several frames that wait for calls. Their caller must continue as native code
// with the result of the outermost of these frames.
func TestResumeWithCommitCallers(t *testing.T) {
	livetest.Slow(t)
	t.Parallel()
	source, err := os.ReadFile(livetest.Testdata(t, "programs", "chain.ll"))
	require.NoError(t, err)
	text := strings.ReplaceAll(string(source), `[ "deopt"(i64 %n) ]`, `[ "deopt"(i64 4294967298, ptr @name, i32 3, i64 8589934592, i64 %n) ]`)
	require.Equal(t, 2, strings.Count(text, "ptr @name,"))
	module := livetest.Raw(t, text+"@name = private constant [2 x i8] c\"f\\00\"\n")
	for n, want := range []string{"42123", "4223", "423", "42"} { // f(3) is ((f(0) * 10 + 1) * 10 + 2) * 10 + 3
		p := livetest.Lli(t, 19, module, "orc")
		command, handed := clitest.AnsweringInterpreter(t, `{"returned":{"type":"i64","bits":"0x2a"},"locked":false}`)
		r := clitest.Run(t, committed(p, command, "--result", "5", "--dry-run", "--json")...)
		require.Equal(t, 0, r.Code, r.Stderr)
		innermost := len(r.Object(t)["committed"].(map[string]any)["left"].([]any)) - 1
		more := []string{"--result", "5"}
		if n > 0 {
			more = append(more, "--to-frame", fmt.Sprint(innermost+n))
		}
		r = clitest.Run(t, committed(p, command, more...)...)
		require.Equal(t, 0, r.Code, r.Stderr)
		require.Contains(t, r.Stdout, fmt.Sprintf("\nframes #0 to #%d are discarded, and the thread continues at ", innermost+n))
		require.NoError(t, p.Wait())
		require.Equal(t, "ready\nsum "+want+"\n", p.Output())
		request, err := os.ReadFile(handed)
		require.NoError(t, err)
		require.Equal(t, n+1, strings.Count(string(request), `"resume":"in-call"`))
		require.Contains(t, string(request), `"returned":{"type":"i64","bits":"0x5","text":"5"}`)
	}
}

// boxes is a program for tinyvm that exits from Box.add when its argument is no longer an int, and then continues in the interpreter for a few
// rounds.
const boxes = `
class Box sum last

method Main.main 0 2
  new Box
  set 1
  get 1
  int 0
  putfield sum
  int 0
  set 0
loop:
  get 1
  get 0
  call Box.add
  print
  get 0
  int 1
  add
  dup
  set 0
  int 6
  lt
  if loop
  get 1
  double 2.5
  call Box.add
  print
  get 1
  getfield sum
  print
  get 1
  getfield last
  return

method Box.add 2 3
  int 0
  set 2
again:
  get 0
  get 0
  getfield sum
  get 1
  add
  putfield sum
  get 0
  get 1
  putfield last
  get 2
  int 1
  add
  dup
  set 2
  int 3
  lt
  if again
  get 0
  getfield sum
  return
`

// TestResumeWithCommitTinyvm requires that a process which describes itself continues after its own interpreter ran in another process, and prints
// the same as without a compiler. This must also hold if the interpreter stopped the program because its fuel was used up.
func TestResumeWithCommitTinyvm(t *testing.T) {
	livetest.Slow(t)
	t.Parallel()
	for _, llvm := range livetest.ShareOf(tinyvmtest.Versions, t.Name()) {
		binary, program := tinyvmtest.Binary(t, llvm), clitest.TempFile(t, "boxes.tvm", boxes)
		for fuel, ends := range map[string]string{"1000": "52.5\n52.5\n2.5\n", "25": "stopped: out of fuel\n"} {
			plain := tinyvmtest.Run(t, binary, "--fuel", fuel, "--interpret", program)
			require.Equal(t, "0\n3\n9\n18\n30\n45\n"+ends, plain.Output)
			p := livetest.Program(t, binary, "--fuel", fuel, "--stand", "1", program)
			r := clitest.Run(t, "resume", "-p", clitest.PID(p), "--with", binary+" --serve "+program, "--commit")
			require.Equal(t, 0, r.Code, r.Stderr)
			require.Contains(t, r.Stdout, "\nBox.add ")
			require.Contains(t, r.Stdout, "says tinyvm after ")
			require.Contains(t, r.Stdout, " are discarded, and the thread continues at tinyvm_enter+")
			require.Equal(t, plain.Status != 0, p.Wait() != nil)
			require.Equal(t, plain.Output, strings.Replace(p.Output(), "ready\n", "", 1))
		}
	}
}
