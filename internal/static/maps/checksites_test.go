package maps_test

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"example.com/reframe/test/frametest"
	"example.com/reframe/test/livetest"

	"github.com/stretchr/testify/require"
)

// apart has allocas of each kind as operands of each kind of site, and stackmaps whose shadows llc must separate: from each other, from a patchpoint,
// and from the end of the function.
const apart = `
declare void @llvm.experimental.stackmap(i64, i32, ...)
declare void @llvm.experimental.patchpoint.void(i64, i32, ptr, i32, ...)
declare token @llvm.experimental.gc.statepoint.p0(i64 immarg, i32 immarg, ptr, i32 immarg, i32 immarg, ...)
declare void @use(ptr)
declare void @callee()
define void @f(i64 %n) gc  "statepoint-example" {
entry:
  %a = alloca i64
  %b = alloca [4 x i64], align 64
  %c = alloca i32, i64 4
  %d = alloca i8, i64 %n
  call void @use(ptr %a)
  br label %next
next:
  %e = alloca i64
  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 1, i32 16, ptr %a, ptr %b, ptr %c, ptr %d, ptr %e)
  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 2, i32 8, i64 %n)
  call void (i64, i32, ptr, i32, ...) @llvm.experimental.patchpoint.void(i64 3, i32 16, ptr null, i32 0, ptr %a, ptr %b)
  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 4, i32 12, ptr %c)
  call void @callee()
  %t = call token (i64, i32, ptr, i32, i32, ...) @llvm.experimental.gc.statepoint.p0(i64 5, i32 0, ptr elementtype(void ()) @callee, i32 0, i32 0, i32 0, i32 0) [ "deopt"(ptr %a, ptr %b, ptr %c, ptr %d) ]
  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 6, i32 16)
  ret void
}`

// TestCheckSites requires that llc's output keeps the rules on each architecture, and that a module that differs violates one rule.
func TestCheckSites(t *testing.T) {
	livetest.Slow(t)
	const allocas, shadows, ends = "allocas are recorded by address", "shadows are apart", "shadows end with their function"
	for _, c := range []struct {
		triple  string
		allocas int // statepoints are only for x86-64 and aarch64, and the stack of s390x is not realigned
	}{{"x86_64-unknown-linux-gnu", 9}, {"aarch64-unknown-linux-gnu", 9}, {"powerpc64le-unknown-linux-gnu", 6}, {"s390x-unknown-linux-gnu", 4}} {
		for _, version := range []int{16, 19, 22} {
			for _, level := range []string{"-O0", "-O2"} {
				t.Run(fmt.Sprintf("%s llc-%d %s", c.triple, version, level), func(t *testing.T) {
					t.Parallel()
					text := "target triple = \"" + c.triple + "\"\n" + apart
					if c.allocas < 9 {
						var lines []string
						for line := range strings.Lines(text) {
							if !strings.Contains(line, "%t = call token") {
								lines = append(lines, line)
							}
						}
						text = strings.Join(lines, "")
					}
					path, m := frametest.Written(t, "apart.ll", text)
					object := frametest.LLC(t, version, path, level, "-enable-patchpoint-liveness=false")
					r := ruled(t, object, allocas, m)
					require.Equal(t, c.allocas, r.Checked)
					require.Empty(t, r.Violations)
					r = ruled(t, object, shadows, m)
					require.Equal(t, 4, r.Checked)
					require.Empty(t, r.Violations)

					_, other := frametest.Written(t, "other.ll", strings.Replace(text, "i64 2, i32 8, i64 %n", "i64 2, i32 800, i64 %n", 1))
					r = ruled(t, object, shadows, other)
					require.Equal(t, 1, r.Broken)
					require.Regexp(t, `record 2 of @f has a shadow of 800 bytes, and record 3 is \d+ bytes after it`, r.Violations[0].What)
					r = ruled(t, object, ends, m)
					require.Equal(t, []int{4, 0, 0}, []int{r.Checked, r.Broken, r.Unknown})
					_, other = frametest.Written(t, "other.ll", strings.Replace(text, "i64 6, i32 16", "i64 6, i32 800", 1))
					r = ruled(t, object, ends, other)
					require.Equal(t, 1, r.Broken)
					require.Regexp(t, `record 6 of @f has a shadow of 800 bytes, and the function ends \d+ bytes after the record`, r.Violations[0].What)
					require.Zero(t, ruled(t, object, shadows, other).Broken)
					_, other = frametest.Written(t, "other.ll", strings.Replace(text, "%d = alloca i8, i64 %n", "%d = alloca i8, i64 9", 1))
					r = ruled(t, object, allocas, other)
					require.NotEmpty(t, r.Violations)
					require.Regexp(t, `record 1 of @f has (Register|Indirect) for operand 3, the alloca %d`, r.Violations[0].What)
				})
			}
		}
	}
}

var recordOffset = regexp.MustCompile(`Record ID: (\d+), instruction offset: (\d+)`)

// TestCallsInShadows requires that the calls which LLVM writes into shadows on x86-64 are accepted. An ordinary call must return to the shadow's end.
// A statepoint's call, which LLVM's document does not mention, may be anywhere in it.
func TestCallsInShadows(t *testing.T) {
	const text = `
target triple = "x86_64-unknown-linux-gnu"
declare void @llvm.experimental.stackmap(i64, i32, ...)
declare token @llvm.experimental.gc.statepoint.p0(i64 immarg, i32 immarg, ptr, i32 immarg, i32 immarg, ...)
declare void @callee()
define void @f() gc  "statepoint-example" {
  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 1, i32 16)
  call void @callee()
  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 2, i32 16)
  %t = call token (i64, i32, ptr, i32, i32, ...) @llvm.experimental.gc.statepoint.p0(i64 3, i32 0, ptr elementtype(void ()) @callee, i32 0, i32 0, i32 0, i32 0) [ "deopt"(i64 0) ]
  ret void
}`
	for _, version := range []int{16, 19, 22} {
		path, _ := frametest.Written(t, "shadow.ll", text)
		at := map[string]int{}
		for _, m := range recordOffset.FindAllStringSubmatch(frametest.Readobj(t, frametest.LLC(t, version, path)), -1) {
			n, err := strconv.Atoi(m[2])
			require.NoError(t, err)
			at[m[1]] = n
		}
		require.Equal(t, at["1"]+16, at["2"], "the call returns to the end of the shadow, where the next begins")
		require.Equal(t, at["2"]+5, at["3"], "a call of five bytes at the start of the shadow")
	}
}
