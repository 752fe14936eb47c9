package main_test

import (
	"encoding/json"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"

	"reframe/internal/livetest"
)

// variables has three allocas in records, and waits in a call without one.
const variables = livetest.Prelude + `
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

// frames and explain show the variables of a frame without a record, in text and JSON, and their exit statuses do not depend on them.
func TestDirectLocationsAreShown(t *testing.T) {
	t.Parallel()
	p := livetest.Lli(t, 19, livetest.Module(t, variables), "mcjit")
	of := func(verb string, more ...string) result {
		return reframe(t, append([]string{verb, "-p", pid(p), "--ir", p.IR}, more...)...)
	}
	r := of("frames")
	require.Equal(t, 0, r.code, r.stderr)
	require.Regexp(t, regexp.MustCompile(`(?m)^  #2   jit     work\+0x[0-9a-f]+
        at no record; variables in its memory that the records of its function locate:
        %ended   i64    guess: 77              0x[0-9a-f]+ = CFA-\d+, record 1
          \(it has a lifetime in the module \(llvm.lifetime\), outside of which its memory may be another variable's\)
        %count   i64    -5                     0x[0-9a-f]+ = CFA-\d+, record 1
        \(no record here; nearest is record 2, \d+ bytes after\)$`), r.stdout)
	r = of("frames", "--json")
	valid(t, "frames.schema.json", r.stdout)
	direct := list(t, frameOf(t, r.object(t), "work")["direct"])
	require.Len(t, direct, 2)
	require.Equal(t, "guess", direct[0]["status"])
	require.Equal(t, "-5", direct[1]["value"])
	require.Equal(t, "0xfffffffffffffffb", direct[1]["hex"])
	require.Equal(t, json.Number("2"), direct[1]["records"])
	valid(t, "frames.schema.json", reframe(t, "frames", "-p", pid(p), "--json").stdout)

	r = of("explain", "-f", "2")
	require.Regexp(t, `(?m)^variables in its memory, by other records of its function\n +%ended +i64 +guess: 77 [^\n]*\n +recorded as &\[rbp-\d+\]\n`, r.stdout)
	require.Regexp(t, `recorded as &\[rbp-\d+\] by record 1 and 1 other\n`, r.stdout)
	valid(t, "explain.schema.json", of("explain", "-f", "2", "--json").stdout)
	unharmed(t, p)
}
