package deopt_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/deopt"
	"example.com/reframe/deopt/frame"
	"example.com/reframe/internal/machine"
	"example.com/reframe/internal/machine/isa/amd64"
	"example.com/reframe/test/frametest"
	"example.com/reframe/test/livetest"
)

// site puts a site into the text of a program.
func site(text, call string) string { return strings.ReplaceAll(text, "SITE", call) }

// TestSmallSites covers the smallest sites that the documents permit: a patchpoint that calls nothing and has no bytes, and one without
// locations. It also covers a stackmap that may only read memory, over which LLVM may move loads but not stores. The thread is stopped at the
// record.
func TestSmallSites(t *testing.T) {
	const body = `
@cell = global i64 7
declare void @llvm.experimental.patchpoint.void(i64, i32, ptr, i32, ...)
define i64 @work(i64 %s) noinline {
  store i64 %s, ptr @cell
  %y = add i64 %s, 5
  SITE
  %l = load i64, ptr @cell
  store i64 1, ptr @cell
  %z = add i64 %y, %l
  ret i64 %z
}`
	for _, c := range []struct {
		name, call, kind string
		slots            int
		result           string // result of the interpreter from the record on; "" if the record lacks values
	}{
		{"no bytes", `call void (i64, i32, ptr, i32, ...) @llvm.experimental.patchpoint.void(i64 1, i32 0, ptr null, i32 0, i64 %y)`, "patchpoint", 1, "205"},
		{"no locations", `call void (i64, i32, ptr, i32, ...) @llvm.experimental.patchpoint.void(i64 1, i32 15, ptr null, i32 1, i64 %s)`, "patchpoint", 0, ""},
		{"read-only", `call void (i64, i32, ...) @llvm.experimental.stackmap(i64 1, i32 0, i64 %y) readonly`, "stackmap", 1, "205"},
	} {
		for _, version := range []int{14, 19, 22} {
			t.Run(fmt.Sprintf("%s lli-%d", c.name, version), func(t *testing.T) {
				p := livetest.Lli(t, version, program(t, prelude+again+site(body, c.call)), "mcjit")
				session, v := stopAtRecord(t, p)
				f := frametest.One(t, v, "work")
				require.Equal(t, c.kind, f.Record.Site)
				require.Equal(t, frame.Before, f.Record.Moment)
				require.Len(t, f.Slots, c.slots)
				out, err := v.Run(t.Context(), frametest.StackOf(v, f), deopt.Limits{})
				if c.result == "" {
					require.ErrorContains(t, err, "%y: no slot holds it")
				} else {
					require.Equal(t, "105", frametest.Slot(t, f, "%y").Value)
					require.NoError(t, err)
					require.Equal(t, c.result, out.Result.Value)
				}
				require.NoError(t, session.Detach())
			})
		}
	}
}

// TestInsideARegion covers code that is patched into a region and calls nothing, as in the document's second example. A thread in that code must have
// no record, and a note that its pc is in the record's region.
func TestInsideARegion(t *testing.T) {
	text := prelude + again + `
define i64 @work(i64 %s) noinline {
  %y = add i64 %s, 5
  %r = call anyregcc i64 (i64, i32, ptr, i32, ...) @llvm.experimental.patchpoint.i64(i64 1, i32 15, ptr null, i32 1, i64 %s, i64 %y)
  %z = add i64 %y, %r
  ret i64 %z
}`
	for _, version := range []int{14, 19, 22} {
		t.Run(fmt.Sprintf("lli-%d", version), func(t *testing.T) {
			p := livetest.Lli(t, version, program(t, text), "mcjit")
			session, v := stopAtRecord(t, p)
			f := frametest.One(t, v, "work")
			require.NotNil(t, f.Record)
			code := make([]byte, 15)
			require.NoError(t, v.Target().ReadMemory(code, f.Address()))
			n := amd64.Length(code)
			require.NotZero(t, n)
			_, err := session.RunTo(t.Context(), f.Address()+machine.Addr(n))
			require.NoError(t, err)
			target, err := session.Target()
			require.NoError(t, err)
			v, err = deopt.Frames(target, frametest.Known(t, p))
			require.NoError(t, err)
			inside := frametest.One(t, v, "work")
			require.Equal(t, f.Address()+machine.Addr(n), inside.Address())
			require.Nil(t, inside.Record)
			require.Empty(t, inside.Slots)
			require.NoError(t, session.Detach())
		})
	}
}
