package stress

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/reframe/deopt"
	"example.com/reframe/internal/llvm/ir"
	"example.com/reframe/test/livetest"
)

// lli returns the command that runs the module text under lli, and options that give reframe the module told instead.
func lli(t *testing.T, version int, kind, text, told string) ([]string, Options) {
	t.Helper()
	m, err := ir.ParseFile(livetest.Raw(t, told))
	require.NoError(t, err)
	command := append(livetest.LliWords(t, version), "-jit-kind="+kind)
	if version == 14 {
		command = append(command, "-opaque-pointers") // the default from 15 on
	}
	return append(command, livetest.Raw(t, text)), Options{Options: deopt.Options{Modules: []*ir.Module{m}}, Probability: 1}
}

// site returns a module with a function @work, whose site records both of its arguments, and the given rest.
func site(result, body, rest string) string {
	return `target datalayout = "e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-f80:128-n8:16:32:64-S128"
target triple = "x86_64-pc-linux-gnu"
declare void @llvm.experimental.stackmap(i64, i32, ...)
declare i32 @printf(ptr, ...)
@format = private constant [5 x i8] c"%ld\0A\00"
define ` + result + ` @work(` + result + ` %a, ` + result + ` %b) noinline {
  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 9, i32 0, ` + result + ` %a, ` + result + ` %b)
` + body + `
}
` + rest
}

// swap exchanges the operands of the site.
func swap(text string) string {
	const start = "(i64 9, i32 0, "
	before, rest, _ := strings.Cut(text, start)
	operands, after, _ := strings.Cut(rest, ")")
	one, other, _ := strings.Cut(operands, ", ")
	return before + start + other + ", " + one + ")" + after
}

// counting calls @work a hundred times and prints the results.
const counting = `
define i32 @main() {
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %i1, %loop ]
  %acc = phi i64 [ 1, %entry ], [ %acc1, %loop ]
  %r = call i64 @work(i64 %acc, i64 %i)
  %acc1 = mul i64 %r, 3
  %i1 = add i64 %i, 1
  %c = icmp ult i64 %i1, 100
  br i1 %c, label %loop, label %done
done:
  %p = call i32 (ptr, ...) @printf(ptr @format, i64 %acc1)
  ret i32 7
}
`

// TestUnderLli requires that code that lli compiles in the process is deoptimized, with each of its JITs.
func TestUnderLli(t *testing.T) {
	livetest.Slow(t)
	text := site("i64", "  %r = sub i64 %a, %b\n  ret i64 %r", counting)
	var turns livetest.Turns
	for _, version := range []int{14, 19, 22} {
		for _, kind := range []string{"mcjit", "orc"} {
			if version == 14 && kind == "orc" { // this JIT does not register its objects
				continue
			}
			for _, share := range []float64{0.01, 0.1, 1} {
				if turns.Out(4) {
					continue
				}
				t.Run(fmt.Sprintf("lli-%d %s %v", version, kind, share), func(t *testing.T) {
					t.Parallel()
					command, o := lli(t, version, kind, text, text)
					o.Probability, o.Seed = share, 2
					r := run(t, command, o)
					require.Equal(t, Same, r.Status, "%+v", r)
					require.Equal(t, 7, r.Stressed.ExitCode)
					require.EqualValues(t, 100, r.Exits)
					require.Positive(t, r.Committed)
					require.Zero(t, r.Left)

					command, o = lli(t, version, kind, text, swap(text))
					o.Probability, o.Seed = share, 2
					r = run(t, command, o)
					require.Equal(t, Different, r.Status, "%+v", r)
					require.True(t, r.Culprit.Single)
					if share == 1 { // the first exit is that of @work(1, 0)
						require.Equal(t, Exit{1, 1}, r.Culprit.Native)
					}
				})
			}
		}
	}
}

// TestRecursionThroughOneCall requires an exit, and a commit, in each activation of a recursion through one call.
func TestRecursionThroughOneCall(t *testing.T) {
	const depth, rounds = 12, 3
	text := livetest.Prelude + `
declare i32 @printf(ptr, ...)
@format = private constant [5 x i8] c"%ld\0A\00"
define i64 @down(i64 %n) noinline gc "statepoint-example" {
entry:
  %end = icmp eq i64 %n, 0
  br i1 %end, label %last, label %more
last:
  ret i64 5
more:
  %less = sub i64 %n, 1
  %t = call ` + livetest.Statepoint(8, "@down", "%less", "i64 %n") + `
  %r = call i64 @llvm.experimental.gc.result.i64(token %t)
  %x = mul i64 %r, 7
  %y = xor i64 %x, %n
  ret i64 %y
}
define i32 @main() {
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %i1, %loop ]
  %r = call i64 @down(i64 ` + fmt.Sprint(depth) + `)
  %p = call i32 (ptr, ...) @printf(ptr @format, i64 %r)
  %i1 = add i64 %i, 1
  %c = icmp ult i64 %i1, ` + fmt.Sprint(rounds) + `
  br i1 %c, label %loop, label %done
done:
  ret i32 0
}`
	for _, version := range livetest.ShareOf([]int{16, 19, 22}, "recursion") {
		command, o := lli(t, version, "mcjit", text, text)
		r := run(t, command, o)
		require.Equal(t, Same, r.Status, "%+v", r)
		require.EqualValues(t, depth*rounds, r.Committed, "%+v", r)
		require.Equal(t, r.Committed, r.Exits)
	}
}

// TestWrongBundle requires that a deopt bundle with two exchanged operands is found.
func TestWrongBundle(t *testing.T) {
	livetest.Slow(t)
	const program, right, wrong = "state.ll", `"deopt"(i64 %n, i64 %s6, `, `"deopt"(i64 %s6, i64 %n, `
	text, err := os.ReadFile(livetest.Testdata(t, "programs", program))
	require.NoError(t, err)
	require.Contains(t, string(text), right)
	path := livetest.Module(t, strings.Replace(string(text), right, wrong, 1))
	for _, version := range livetest.ShareOf([]int{14, 19, 22}, "bundle") {
		object := livetest.PICObject(t, version, path, "-O2")
		o := options(t, version, program)
		o.Probability = 0.3
		r := run(t, livetest.ObjectHostCommand(t, object, livetest.ObjectHostOptions{Rounds: 10}), o)
		require.Equal(t, Different, r.Status, "%+v", r)
		require.EqualValues(t, 52, r.Culprit.Record.ID)
		require.Equal(t, "statepoint", r.Culprit.Record.Site)
		require.EqualValues(t, "after", r.Culprit.Record.Moment)
		require.True(t, r.Culprit.Single)
	}
}

// TestEndings requires that each kind of difference is found.
func TestEndings(t *testing.T) {
	livetest.Slow(t)
	for name, c := range map[string]struct {
		text      string
		what      []string
		stressed  string // the text at the first difference in the stressed run
		behind    int
		forLonger bool
	}{
		"exit status": {site("i32", "  ret i32 %a", `
define i32 @main() {
  %r = call i32 @work(i32 3, i32 4)
  ret i32 %r
}`), []string{"status"}, "exit status 4", 0, false},
		"death": {site("ptr", "  ret ptr %a", `
define i32 @main() {
  %x = alloca i32
  store i32 0, ptr %x
  %p = call ptr @work(ptr %x, ptr null)
  %r = load volatile i32, ptr %p
  ret i32 %r
}`), []string{"status", "stderr"}, "killed by SIGSEGV", 0, false},
		// The first of two wrong results does not change the output.
		"two": {site("i64", "  %r = sub i64 %a, 5\n  ret i64 %r", `
define i32 @main() {
  %x = call i64 @work(i64 5, i64 6)
  %y = call i64 @work(i64 5, i64 7)
  %z = call i64 @work(i64 5, i64 5)
  %s = add i64 %x, %y
  %two = icmp ugt i64 %s, 2
  %r = zext i1 %two to i32
  ret i32 %r
}`), []string{"status"}, "exit status 1", 1, false},
		"no end": {site("i64", "  %r = add i64 %a, 1\n  ret i64 %r", `
define i32 @main() {
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %r, %loop ]
  %r = call i64 @work(i64 %i, i64 100)
  %c = icmp ne i64 %r, 10
  br i1 %c, label %loop, label %done
done:
  ret i32 0
}`), []string{"status"}, "does not end: it came to ", 0, true},
		"standing still": {site("i32", "  ret i32 %a", `
declare i32 @sleep(i32)
define i32 @main() {
  %r = call i32 @work(i32 0, i32 10000)
  %s = call i32 @sleep(i32 %r)
  ret i32 0
}`), []string{"status"}, "does not end: it reached no exit any more", 0, true},
	} {
		if c.forLonger && !livetest.Whole() {
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			command, o := lli(t, 19, "mcjit", c.text, c.text)
			require.Equal(t, Same, run(t, command, o).Status)
			command, o = lli(t, 19, "mcjit", c.text, swap(c.text))
			o.Warn = func(text string) { t.Log(text) }
			o.Time = livetest.Patience
			if c.forLonger {
				o.Time = 20 * time.Second
			}
			r, err := Run(t.Context(), command, o)
			require.NoError(t, err)
			require.Equal(t, Different, r.Status, "%+v", r)
			require.Equal(t, c.what, whats(r))
			require.Contains(t, r.Differences[0].Stressed, c.stressed)
			require.NotNil(t, r.Culprit, "%+v", r)
			require.Equal(t, c.behind == 0, r.Culprit.Single)
			require.Equal(t, c.behind, r.Culprit.After)
			require.EqualValues(t, c.behind+1, r.Culprit.Native.Number)
		})
	}
}

// TestUndecided requires that differences in every run, or runs that all take too long, are not attributed to exits, and that no command runs more
// often than its bound.
func TestUndecided(t *testing.T) {
	text := site("i64", "  %r = sub i64 %a, %b\n  ret i64 %r", counting)
	command, o := lli(t, 19, "mcjit", text, text)
	shell := func(line string) []string {
		return append([]string{livetest.Tool(t, "sh"), "-c", line, "-"}, command...)
	}
	r := run(t, shell(`echo $$ >&2; exec "$@"`), o)
	require.Equal(t, Undecided, r.Status)
	require.Contains(t, r.Why, "it differs even with no exit committed")
	require.Equal(t, []string{"stderr"}, whats(r))
	require.Nil(t, r.Culprit)
	require.Equal(t, 1, r.Reruns)

	wrong, o := lli(t, 19, "mcjit", text, swap(text))
	o.Reruns = 3
	r = run(t, wrong, o)
	require.Equal(t, Different, r.Status)
	require.Nil(t, r.Culprit)
	require.Equal(t, 3, r.Reruns)
	require.Equal(t, "the limit of 3 further runs was reached (--reruns)", r.Narrowed)
}
