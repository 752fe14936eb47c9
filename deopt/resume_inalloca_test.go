package deopt_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/deopt"
	"example.com/reframe/internal/llvm/ir"
	"example.com/reframe/test/frametest"
	"example.com/reframe/test/livetest"
)

// inAllocaProgram makes two objects in the memory of the arguments of @take, as in the InAlloca document. It waits at MAKING, when the first of them
// is made, or at TAKING, when the callee has all of them.
const inAllocaProgram = `declare i32 @pause()
declare i32 @puts(ptr)
declare ptr @llvm.stacksave()
declare void @llvm.stackrestore(ptr)
%object = type { i64, i64 }
%memory = type <{ %object, %object, i64 }>
@msg = private constant [6 x i8] c"ready\00"
define void @wait() noinline {
  %x = call i32 @puts(ptr @msg)
  br label %l
l:
  %r = call i32 @pause()
  br label %l
}
define void @first(ptr %this, i64 %v) noinline {
  store i64 %v, ptr %this
  %b = getelementptr %object, ptr %this, i32 0, i32 1
  %d = mul i64 %v, 2
  store i64 %d, ptr %b
  ret void
}
define void @second(ptr %this, i64 %v) noinline {
  call void @first(ptr %this, i64 %v)
  MAKING
  ret void
}
define i64 @take(ptr inalloca(%memory) %args) noinline {
  %b = getelementptr %memory, ptr %args, i32 0, i32 1, i32 1
  %n = getelementptr %memory, ptr %args, i32 0, i32 2
  %1 = load i64, ptr %args
  %2 = load i64, ptr %b
  %3 = load i64, ptr %n
  TAKING
  %4 = mul i64 %1, 100
  %5 = add i64 %4, %2
  %6 = mul i64 %5, 100
  %7 = add i64 %6, %3
  store i64 0, ptr %args
  ret i64 %7
}
define i64 @work(i64 %n, i64 %kept) noinline {
  %s = call ptr @llvm.stacksave()
  %m = alloca inalloca %memory
  %q = getelementptr %memory, ptr %m, i32 0, i32 1
  call void @first(ptr %q, i64 %n)
  call void @second(ptr %m, i64 3) [ "deopt"(i64 %n, i64 %kept, ptr %m, ptr %s) ]
  %at = getelementptr %memory, ptr %m, i32 0, i32 2
  store i64 %kept, ptr %at
  %r = call i64 @take(ptr inalloca(%memory) %m)
  call void @llvm.stackrestore(ptr %s)
  %sum = add i64 %r, %kept
  ret i64 %sum
}
define i32 @main() {
  %r = call i64 @work(i64 7, i64 11)
  ret i32 0
}
`

// TestResumeWithInAllocaArguments requires the values of a function while it makes inalloca arguments, and those of the callee that receives
// them. The caller must resume through the call. It has a base pointer, because its stack pointer moves between the allocation and the call.
func TestResumeWithInAllocaArguments(t *testing.T) {
	making := strings.NewReplacer("MAKING", "call void @wait()", "TAKING", "").Replace(inAllocaProgram)
	taking := strings.NewReplacer("MAKING", "", "TAKING", `call void @wait() [ "deopt"(ptr %args, i64 %1, i64 %2, i64 %3) ]`).Replace(inAllocaProgram)
	for _, version := range []int{16, 19, 22} {
		for _, level := range []string{"-O0", "-O2"} {
			t.Run(fmt.Sprintf("lli-%d %s", version, level), func(t *testing.T) {
				p := livetest.Lli(t, version, program(t, making), "mcjit", level)
				v := frametest.Look(t, p, true, deopt.Options{Modules: []*ir.Module{frametest.ReadModule(t, "making.ll", making)}})
				f := frametest.One(t, v, "work")
				require.Equal(t, "7", frametest.Slot(t, f, "%n").Value)
				require.Equal(t, "11", frametest.Slot(t, f, "%kept").Value)
				out, err := v.Run(context.Background(), frametest.StackOf(v, f), deopt.Limits{})
				require.NoError(t, err)
				require.Equal(t, "31422", out.Result.Value) // (3·100 + 14)·100 + 11, and 11

				p = livetest.Lli(t, version, program(t, taking), "mcjit", level)
				v = frametest.Look(t, p, true, deopt.Options{Modules: []*ir.Module{frametest.ReadModule(t, "taking.ll", taking)}})
				f = frametest.One(t, v, "take")
				for name, want := range map[string]string{"%1": "3", "%2": "14", "%3": "11"} {
					require.Equal(t, want, frametest.Slot(t, f, name).Value)
				}
				out, err = v.Run(context.Background(), frametest.StackOf(v, f), deopt.Limits{})
				require.NoError(t, err)
				require.Equal(t, "31411", out.Result.Value)
			})
		}
	}
}
