package commit

import (
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/reframe/internal/vm/layout"
	"example.com/reframe/ptrace"
	"example.com/reframe/test/frametest"
	"example.com/reframe/test/livetest"
)

// left returns a program whose @work, with the given definition, waits and then runs body.
func left(define, body string) string {
	return livetest.Prelude + `
declare ptr @malloc(i64)
declare void @exit(i32)
@byte = global i8 2
@pointer = global ptr null
@packed = global <{ i8, ptr, i8 }> zeroinitializer
` + define + ` gc "statepoint-example" {
  %t = call ` + livetest.Statepoint(8, "@wait", "1", "i64 %a") + "\n" + body + `
}
`
}

const (
	plainWork  = "define i64 @work(i64 %a) noinline"
	returnZero = "  ret i64 0"
)

// TestCommitRefuses requires that nothing is written if it is uncertain that the thread can continue, or if the interpreter had effects that cannot
// be written. The process must keep waiting.
func TestCommitRefuses(t *testing.T) {
	livetest.Slow(t)
	for name, c := range map[string]struct{ define, body, main, want string }{
		"a call of malloc": {plainWork, "  %m = call ptr @malloc(i64 8)\n" + returnZero, livetest.Start, "the interpreter called @malloc, whose effect would be lost"},
		"a call of exit":   {plainWork, "  call void @exit(i32 3)\n" + returnZero, livetest.Start, "the interpreter called @exit, whose effect would be lost"},
		"its own memory": {plainWork, "  store ptr @msg, ptr @pointer\n" + returnZero, livetest.Start,
			"depends on the addresses of its own memory"},
		"its own memory, unaligned": {plainWork, "  store ptr @msg, ptr getelementptr (i8, ptr @packed, i64 1), align 1\n" + returnZero, livetest.Start,
			"depends on the addresses of its own memory"},
		"a part of an address": {plainWork, "  %x = ptrtoint ptr @msg to i64\n  %y = lshr i64 %x, 12\n  %z = trunc i64 %y to i8\n  store i8 %z, ptr @byte\n" + returnZero, livetest.Start,
			"depends on the addresses of its own memory"},
		"an undefined byte": {plainWork, "  %x = or i8 undef, 1\n  store i8 %x, ptr @byte\n" + returnZero, livetest.Start,
			"the interpreter would write an undefined byte at 0x"},
		"not writable": {plainWork, "  store i8 7, ptr @work\n" + returnZero, livetest.Start, ", which is not writable"},
		"no CFI":       {"define i64 @work(i64 %a) noinline nounwind", returnZero, livetest.Start, ", work was found by its code, not by CFI"},
		"preserve_most": {"define preserve_mostcc i64 @work(i64 %a) noinline", returnZero,
			strings.Replace(livetest.Start, "call i64", "call preserve_mostcc i64", 1), "@work has the calling convention preserve_mostcc"},
		"sret": {"define void @work(ptr sret(i64) %p, i64 %a) noinline", "  ret void",
			strings.Replace(livetest.Start, "%r = call i64 @work(", "call void @work(ptr sret(i64) @seed, ", 1), "@work returns in memory (sret)"},
		"swifterror": {"define i64 @work(i64 %a, ptr swifterror %e) noinline", returnZero, `
define i32 @main() {
  %e = alloca swifterror ptr
  store ptr null, ptr %e
  %r = call i64 @work(i64 1, ptr swifterror %e)
  ret i32 0
}`, "@work returns in one more register (swifterror)"},
	} {
		t.Run(name, func(t *testing.T) {
			p := livetest.Lli(t, 19, livetest.Raw(t, left(c.define, c.body)+c.main), "mcjit")
			refusedCommit(t, p, frametest.Known(t, p), innermost, "", c.want)
		})
	}
}

// TestCommitUndefined requires that a bit that is undefined in the interpreter keeps its value in the process.
func TestCommitUndefined(t *testing.T) {
	text := left(plainWork, `  store i64 undef, ptr @seed
  %x = or i8 undef, 2
  store i8 %x, ptr @byte
  ret i64 0`) + `
declare i32 @printf(ptr, ...)
@format = private constant [9 x i8] c"%ld %hhd\0A"
@end = private constant [1 x i8] c"\00"
define i32 @main() {
  %r = call i64 @work(i64 1)
  %s = load i64, ptr @seed
  %b = load i8, ptr @byte
  %w = zext i8 %b to i32
  %p = call i32 (ptr, ...) @printf(ptr @format, i64 %s, i32 %w)
  ret i32 0
}`
	text = strings.Replace(text, `[9 x i8] c"%ld %hhd\0A"`, `[10 x i8] c"%ld %hhd\0A\00"`, 1)
	p := livetest.Lli(t, 19, livetest.Raw(t, text), "mcjit")
	out, printed := commit(t, p, frametest.Known(t, p), innermost, "")
	require.Equal(t, "100 2\n", printed)
	require.Empty(t, out.Memory)
}

// TestCommitFastcc requires that reframe determines from the code whether a fastcc function removes its arguments from the stack, keeps the stack
// aligned so that it could, or returns like any other function.
func TestCommitFastcc(t *testing.T) {
	livetest.Slow(t)
	text := left("define internal fastcc i64 @work(i64 %a) noinline", "  ret i64 %a") + `
declare i32 @printf(ptr, ...)
@format = private constant [5 x i8] c"%ld\0A\00"
define i32 @main() {
  %r = call fastcc i64 @work(i64 41)
  %p = call i32 (ptr, ...) @printf(ptr @format, i64 %r)
  ret i32 0
}`
	for _, version := range []int{16, 19, 22} {
		p := livetest.Lli(t, version, livetest.Raw(t, text), "mcjit")
		_, printed := commit(t, p, frametest.Known(t, p), innermost, "")
		require.Equal(t, "41\n", printed)

		p = livetest.Lli(t, version, livetest.Raw(t, text), "mcjit", "-tailcallopt")
		refusedCommit(t, p, frametest.Known(t, p), innermost, "", "the number of stack bytes that @work, which is fastcc, pops when it returns is unknown")
	}
}

// TestCommitRefusesOtherType requires an error if the resumed function does not return the type that the caller expects.
func TestCommitRefusesOtherType(t *testing.T) {
	text := left(plainWork, "  ret i64 %a") + `
define i32 @other(i64 %n) {
entry:
  ret i32 1
}` + livetest.Start
	p := livetest.Lli(t, 19, livetest.Raw(t, text), "mcjit")
	o := frametest.Known(t, p)
	l, err := layout.Parse("l.json", []byte(`{"schema":"reframe.layout/v1","exits":[{"function":"work","record":8,
		"resume":{"function":"other","block":"entry"},"slots":[{"operand":0,"name":"%n"}]}]}`))
	require.NoError(t, err)
	o.Layouts = []*layout.Layout{l}
	refusedCommit(t, p, o, innermost, "", "expects a value of type i64, but the function that resumes returns another type")
}

// TestCommitRefusesSignalFrame requires an error if a signal frame lies between the frame and the innermost one: a commit would not restore its mask
// and registers.
func TestCommitRefusesSignalFrame(t *testing.T) {
	text := livetest.Prelude + `
@here = private constant [9 x i8] c"handling\00"
define void @handler(i32 %n) {
  %x = call i32 @puts(ptr @here)
  br label %l
l:
  %r = call i32 @pause()
  br label %l
}
define i64 @work(i64 %a) noinline gc "statepoint-example" {
  %t = call ` + livetest.Statepoint(8, "@wait", "1", "i64 %a") + `
  ret i64 %a
}
define i32 @main() {
  %h = call ptr @signal(i32 10, ptr @handler)
  %r = call i64 @work(i64 1)
  ret i32 0
}`
	p := livetest.Lli(t, 19, livetest.Raw(t, text), "mcjit")
	p.Signal(t, syscall.SIGUSR1)
	require.Eventually(t, func() bool { return strings.Contains(p.Output(), "handling") }, livetest.Patience, time.Millisecond)
	p.AwaitPause(t)
	refusedCommit(t, p, frametest.Known(t, p), innermost, "", "is a signal frame, and its handler has not returned")
}

// TestCommitKilled requires that a commit reports the end of a process that was killed while it was stopped.
func TestCommitKilled(t *testing.T) {
	p := livetest.Lli(t, 19, printing(t), "mcjit")
	s := frametest.Open(t, p)
	out, c, err := prepareCommit(t, s, deoptimizeLayout(t, frametest.Known(t, p)), innermost, "")
	require.NoError(t, err)
	p.Signal(t, syscall.SIGKILL)
	require.ErrorIs(t, c.Write(), ptrace.ErrProcessExited)
	require.False(t, out.Committed.Written)
	require.NoError(t, s.Detach())
}

// TestCommitTakenBack requires that the earlier changes are undone if a later one cannot be written.
func TestCommitTakenBack(t *testing.T) {
	text := left(plainWork, "  store i64 5, ptr @seed\n  store i8 9, ptr @byte\n  ret i64 0") + livetest.Start
	p := livetest.Lli(t, 19, livetest.Raw(t, text), "mcjit")
	s := frametest.Open(t, p)
	_, c, err := prepareCommit(t, s, frametest.Known(t, p), innermost, "")
	require.NoError(t, err)
	require.NotEmpty(t, c.memory)
	read := func() (out []string) {
		target, err := s.Target()
		require.NoError(t, err)
		for _, m := range c.memory[:len(c.memory)-1] {
			b := make([]byte, len(m.Data))
			require.NoError(t, target.ReadMemory(b, m.Addr))
			out = append(out, fmt.Sprintf("%x", b))
		}
		return out
	}
	c.memory = append(c.memory, ptrace.Change{Addr: 4096, Data: []byte{1}})
	before := read()
	require.Error(t, c.Write())
	require.Equal(t, before, read())
	require.NoError(t, s.Detach())
	p.AwaitPause(t)
	s = frametest.Open(t, p) // the commit can be repeated
	_, c, err = prepareCommit(t, s, frametest.Known(t, p), innermost, "")
	require.NoError(t, err)
	require.NoError(t, c.Write())
	require.NoError(t, s.Detach())
	require.NoError(t, p.Wait())
}
