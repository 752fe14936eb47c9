package maps_test

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/internal/static/maps"
	"example.com/reframe/test/frametest"
	"example.com/reframe/test/livetest"
)

const stackSizesAgree = "stack sizes agree"

// TestStackSizesOfObjects covers unlinked objects, whose frames have no CFI and no frame pointer. Until linking, a call of an undefined function has
// the next instruction as its target.
func TestStackSizesOfObjects(t *testing.T) {
	for _, triple := range []string{"x86_64-pc-linux-gnu", "x86_64-apple-macosx11", "x86_64-pc-windows-msvc", "s390x-linux-gnu"} {
		for _, program := range []string{"dup.ll", "pc_ret.ll", "false_match.ll"} {
			for _, version := range []int{19, 22} {
				path := livetest.TryObject(t, version, program, "-mtriple="+triple)
				if path == "" {
					require.Equal(t, "s390x-linux-gnu", triple, "%s, LLVM %d", program, version)
					continue
				}
				r := ruled(t, path, stackSizesAgree)
				require.NotZero(t, r.Checked)
				require.Zero(t, r.Broken, "%s: %v", path, r.Violations)
				require.Zero(t, r.Unknown, "%s: %s", path, r.Skipped)
			}
		}
	}
}

// TestStackSizesBehindCallsElsewhere requires that the stack size after a call of another object, and after a jump to one, is determined from the
// instructions alone.
func TestStackSizesBehindCallsElsewhere(t *testing.T) {
	path, _ := frametest.Written(t, "elsewhere.ll", stackmapHead+`
declare i64 @other(i64)
define i64 @ends(i64 %x) {
  %c = icmp eq i64 %x, 0
  br i1 %c, label %leave, label %stay
leave:
  %r = tail call i64 @other(i64 %x)
  ret i64 %r
stay:
  %a = call i64 @other(i64 1)
  %b = call i64 @other(i64 %a)
  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 1, i32 0, i64 %x)
  ret i64 %b
}`)
	// Without unwind tables.
	object := frametest.LLC(t, 19, path, "-mtriple=x86_64-pc-windows-msvc")
	r := ruled(t, object, stackSizesAgree)
	require.Equal(t, maps.CheckRule{Rule: stackSizesAgree, Fact: maps.SizesAgree.Fact, Checked: 1}, r)
}

// TestStackSizesTooSmall requires that a size that is too small is reported even on architectures where frames reserve space for arguments.
func TestStackSizesTooSmall(t *testing.T) {
	path := livetest.Object(t, 19, "pc_ret.ll", "-mtriple=s390x-linux-gnu")
	b, err := os.ReadFile(path)
	require.NoError(t, err)
	at := bytes.Index(b, []byte("\x03\x00\x00\x00\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00\x00\x01")) // one function, one record
	require.Positive(t, at)
	require.Equal(t, byte(160), b[at+16+8+7]) // pc_ret.ll has only the area that every callee gets
	b[at+16+8+7] = 152
	broken := filepath.Join(t.TempDir(), "broken.o")
	require.NoError(t, os.WriteFile(broken, b, 0o644))
	r := ruled(t, broken, stackSizesAgree)
	require.Len(t, r.Violations, 1)
	require.Equal(t, "its frame has 152 bytes here, but 160 by CFI", r.Violations[0].What)
}
