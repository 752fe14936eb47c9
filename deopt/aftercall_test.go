package deopt_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/deopt"
	"example.com/reframe/deopt/frame"
	"example.com/reframe/internal/llvm/ir"
	"example.com/reframe/internal/machine"
	"example.com/reframe/internal/static/lint"
	"example.com/reframe/test/frametest"
	"example.com/reframe/test/livetest"
)

// stackmapAfterCall has a stackmap that follows a call and records the call's result. Between the two, LLVM moves the result and reloads values
// from the frame.
const stackmapAfterCall = prelude + `
define double @waitd(i64 %a) noinline {
  %r = call i64 @wait(i64 %a)
  %d = sitofp i64 %r to double
  ret double %d
}
define double @floats(i64 %s) noinline {
  %f = sitofp i64 %s to double
  %x = fadd double %f, 0.5
  %n = mul i64 %s, 3
  %r = call double @waitd(i64 1)
  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 2, i32 0, double %r, double %x, i64 %n, i64 77)
  %q = call double @waitd(i64 2)
  %u = fadd double %q, %r
  %v = fadd double %u, %x
  %m = sitofp i64 %n to double
  %w = fadd double %v, %m
  ret double %w
}
define i64 @work(i64 %s) noinline {
  %x0 = add i64 %s, 5
  %x1 = mul i64 %s, 7
  %x2 = mul i64 %x0, %x1
  %x3 = xor i64 %x2, %x1
  %x4 = add i64 %x3, %x0
  %x5 = sub i64 %x4, %x2
  %x6 = mul i64 %x5, 11
  %z = call double @floats(i64 %s)
  %r = fptosi double %z to i64
  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 4, i32 0, i64 %x0)
  %k = add i64 %r, %x0
  %k1 = add i64 %k, %x1
  %k2 = add i64 %k1, %x2
  %k3 = add i64 %k2, %x3
  %k4 = add i64 %k3, %x4
  %k5 = add i64 %k4, %x5
  %k6 = add i64 %k5, %x6
  ret i64 %k6
}
define i64 @outer(i64 %s) noinline {
  %x0 = add i64 %s, 5
  %x1 = mul i64 %s, 7
  %x2 = mul i64 %x0, %x1
  %x3 = xor i64 %x2, %x1
  %x4 = add i64 %x3, %x0
  %x5 = sub i64 %x4, %x2
  %x6 = mul i64 %x5, 11
  %r = call i64 @work(i64 %s)
  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 3, i32 0, i64 %r, i64 %x0, i64 %x1, i64 %x2, i64 %x3, i64 %x4, i64 %x5, i64 %x6, i64 %s)
  %q = call i64 @work(i64 %s)
  %t = add i64 %q, %r
  %k = add i64 %t, %x0
  %k1 = add i64 %k, %x1
  %k2 = add i64 %k1, %x2
  %k3 = add i64 %k2, %x3
  %k4 = add i64 %k3, %x4
  %k5 = add i64 %k4, %x5
  %k6 = add i64 %k5, %x6
  ret i64 %k6
}
define i32 @main() {
  %s = load volatile i64, ptr @seed
  %r = call i64 @outer(i64 %s)
  ret i32 0
}
`

// TestStackMapBehindMoves requires that the frame in the call has the record of the stackmap after it, and its values, without the call's result.
func TestStackMapBehindMoves(t *testing.T) {
	livetest.Slow(t)
	x := [7]int64{105, 700}
	x[2] = x[0] * x[1]
	x[3] = x[2] ^ x[1]
	x[4] = x[3] + x[0]
	x[5] = x[4] - x[2]
	x[6] = x[5] * 11
	for _, version := range []int{14, 16, 19, 22} {
		for _, level := range []string{"-O0", "-O1", "-O3"} {
			for _, kind := range []string{"mcjit", "orc"} {
				t.Run(fmt.Sprintf("lli-%d %s %s", version, level, kind), func(t *testing.T) {
					p := livetest.Lli(t, version, program(t, stackmapAfterCall), kind, level)
					v := frametest.Look(t, p, false, frametest.Known(t, p))
					f := frametest.One(t, v, "outer")
					require.NotNil(t, f.Record, "%v", f.Notes)
					require.EqualValues(t, 3, f.Record.ID)
					require.Equal(t, frame.Before, f.Record.Moment)
					for k, want := range x {
						require.Equal(t, fmt.Sprint(want), frametest.Slot(t, f, fmt.Sprintf("%%x%d", k)).Value)
					}
					require.Equal(t, "100", frametest.Slot(t, f, "%s").Value)
					r := frametest.Slot(t, f, "%r")
					require.Equal(t, frame.Missing, r.Status)
					require.Contains(t, []string{"rax is caller-saved and frame #4 does not preserve it", "it will be in rax when the call returns, and the call is still running"}, r.Reason)

					f = frametest.One(t, v, "floats")
					require.NotNil(t, f.Record, "%v", f.Notes)
					require.EqualValues(t, 2, f.Record.ID)
					check(t, f, map[string]string{"%x": "100.5", "%n": "300"}, []string{"77"})
					require.Equal(t, "it will be in xmm0 when the call returns, and the call is still running", frametest.Slot(t, f, "%r").Reason)
					require.NotEmpty(t, f.Match().Moves)

					// In @work the stackmap is after the conversion of the result.
					require.Nil(t, frametest.One(t, v, "work").Record)
				})
			}
		}
	}
}

// TestResumeBehindMoves requires that the frame resumes after the moves, given the call's result.
func TestResumeBehindMoves(t *testing.T) {
	text := prelude + `
define i64 @same(i64 %a) noinline {
  ret i64 %a
}
define i64 @work(i64 %s) noinline {
  %x = mul i64 %s, 7
  %r = call i64 @wait(i64 1)
  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 3, i32 0, i64 %r, i64 %x)
  %q = call i64 @same(i64 %x)
  %t = mul i64 %r, 2
  %u = add i64 %t, %q
  ret i64 %u
}` + start
	for _, version := range []int{14, 16, 19, 22} {
		p := livetest.Lli(t, version, program(t, text), "mcjit")
		v := frametest.Look(t, p, true, frametest.Known(t, p))
		f := frametest.One(t, v, "work")
		require.NotEmpty(t, f.Match().Moves)
		stack := frametest.StackOf(v, f)
		_, err := v.Run(t.Context(), stack, deopt.Limits{})
		require.ErrorContains(t, err, "%r")
		stack.Result = "1000"
		out, err := v.Run(t.Context(), stack, deopt.Limits{})
		require.NoError(t, err)
		require.Equal(t, "2700", out.Result.Value)
	}
}

// TestNotBehindMoves requires that a stackmap after a call does not match if it does not, or may not, describe the frame during the call.
func TestNotBehindMoves(t *testing.T) {
	const work = `
define i64 @work(i64 %s) noinline {
  %p = alloca i64
  store volatile i64 %s, ptr %p
  %x = mul i64 %s, 7
  %r = call i64 @wait(i64 1)
  BETWEEN
  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 3, i32 0, i64 %r, i64 %x, i64 %y)
  %q = call i64 @wait(i64 %x)
  %t = add i64 %r, %q
  ret i64 %t
}`
	for between, found := range map[string]bool{
		"%y = add i64 %s, 0":                                          true,
		"%y = load i64, ptr %p":                                       false, // the callee may write there
		"store i64 3, ptr %p\n  %y = add i64 %s, 0":                   false,
		"%y = add i64 %r, 1":                                          false, // compiled to its own instruction
		"call void asm sideeffect \"\", \"\"()\n  %y = add i64 %s, 0": false,
	} {
		p := livetest.Lli(t, 19, program(t, prelude+strings.Replace(work, "BETWEEN", between, 1)+start), "mcjit")
		f := frametest.One(t, frametest.Look(t, p, false, frametest.Known(t, p)), "work")
		require.Equal(t, found, f.Record != nil, between)
		require.Nil(t, frametest.One(t, frametest.Look(t, p, false, deopt.Options{}), "work").Record, "no module says that it is a stackmap")
	}
}

// TestLintBehindCall requires that lint reports a stackmap after a call exactly if a frame that waits in that call gets no record.
func TestLintBehindCall(t *testing.T) {
	livetest.Slow(t)
	const work = `
define TYPE @callee(i64 %a) noinline {
  %r = call i64 @wait(i64 %a)
  %c = CONVERT
  ret TYPE %c
}
define void @keep(TYPE %a) noinline {
  ret void
}
define i64 @work(i64 %s) noinline {
  %r = call TYPE @callee(i64 1)
  BETWEEN
  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 3, i32 0, i64 %s, LIVE)
  call void @keep(TYPE %r)
  ret i64 %s
}`
	for _, c := range []struct {
		typ, convert, between, live string
		warned                      bool
	}{
		{"i64", "add i64 %r, 1", "", "i64 %r", false},
		{"i64", "add i64 %r, 1", "%t = trunc i64 %r to i32", "i32 %t", false},
		{"i64", "add i64 %r, 1", "%t = mul i64 %r, %s", "i64 %t", true},
		{"double", "sitofp i64 %r to double", "", "double %r", false},
		{"double", "sitofp i64 %r to double", "%t = fptosi double %r to i64", "i64 %t", true},
	} {
		text := prelude + strings.NewReplacer("TYPE", c.typ, "CONVERT", c.convert, "BETWEEN", c.between, "LIVE", c.live).Replace(work) + start
		report, err := lint.Lint([]*ir.Module{frametest.ReadModule(t, "m.ll", text)}, nil)
		require.NoError(t, err)
		warned := false
		for _, f := range report.Findings {
			warned = warned || f.Rule == lint.AfterCall && f.Severity == lint.LintWarning
		}
		require.Equal(t, c.warned, warned, c)
		for _, version := range []int{16, 19, 22} {
			p := livetest.Lli(t, version, program(t, text), "mcjit")
			require.Equal(t, !c.warned, frametest.One(t, frametest.Look(t, p, false, frametest.Known(t, p)), "work").Record != nil, "%v %d", c, version)
		}
	}
}

func TestMoves(t *testing.T) {
	for _, c := range []struct {
		name string
		code []byte
		want int // number of moves; -1 if an instruction is not a move
	}{
		{"mov %rax,%rbx", []byte{0x48, 0x89, 0xc3}, 1},
		{"mov %eax,%ebx", []byte{0x89, 0xc3}, 1},
		{"mov %ax,%bx", []byte{0x66, 0x89, 0xc3}, 1},
		{"mov %rax,%rsp", []byte{0x48, 0x89, 0xc4}, -1},
		{"mov 8(%rsp),%rcx; mov %rax,-8(%rbp)", []byte{0x48, 0x8b, 0x4c, 0x24, 0x08, 0x48, 0x89, 0x45, 0xf8}, 2},
		{"mov 8(%rcx),%rcx", []byte{0x48, 0x8b, 0x49, 0x08}, 1},
		{"mov 8(%rsp,%rax),%rcx", []byte{0x48, 0x8b, 0x4c, 0x04, 0x08}, 1},
		{"mov %rax,8(%rcx)", []byte{0x48, 0x89, 0x41, 0x08}, -1},
		{"mov $1,%ecx; xor %eax,%eax; lea 8(%rsp),%rdi", []byte{0xb9, 1, 0, 0, 0, 0x31, 0xc0, 0x48, 0x8d, 0x7c, 0x24, 0x08}, 3},
		{"lea 5(%r14,%rbx,1),%rax; lea 5(%rbx),%ecx", []byte{0x49, 0x8d, 0x44, 0x1e, 0x05, 0x8d, 0x4b, 0x05}, 2},
		{"lea 0x10(%rip),%rax", []byte{0x48, 0x8d, 0x05, 0x10, 0, 0, 0}, 1},
		{"xor %ecx,%eax", []byte{0x31, 0xc8}, 1},
		{"nop", []byte{0x90}, 0},
		{"movaps %xmm0,%xmm8; movsd %xmm0,-16(%rbp); movss -16(%rbp),%xmm1", []byte{0x44, 0x0f, 0x28, 0xc0, 0xf2, 0x0f, 0x11, 0x45, 0xf0, 0xf3, 0x0f, 0x10, 0x4d, 0xf0}, 3},
		{"movsd %xmm0,%xmm1", []byte{0xf2, 0x0f, 0x10, 0xc8}, 1},
		{"add $8,%rsp", []byte{0x48, 0x83, 0xc4, 0x08}, -1},
		{"call", []byte{0xe8, 0, 0, 0, 0}, -1},
		{"cut off", []byte{0x48, 0x89}, -1},
	} {
		moves := deopt.MovesTo(bytesAt{0x1000, c.code}, 0x1000, 0x1000+machine.Addr(len(c.code)))
		require.Equal(t, c.want >= 0, moves != nil, c.name)
		require.Equal(t, max(c.want, 0), len(moves), c.name)
	}
	require.Nil(t, deopt.MovesTo(bytesAt{0x1000, make([]byte, 0)}, 0x1000, 0x1010))
	many := make([]byte, 3*(deopt.MaxMoves+1))
	for k := range many {
		many[k] = []byte{0x48, 0x89, 0xc3}[k%3]
	}
	require.Nil(t, deopt.MovesTo(bytesAt{0x1000, many}, 0x1000, 0x1000+machine.Addr(len(many))))
}
