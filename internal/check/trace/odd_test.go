package trace

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/deopt"
	"example.com/reframe/deopt/frame"
	"example.com/reframe/deopt/stackmap"
	"example.com/reframe/internal/llvm/ir"
	"example.com/reframe/internal/llvm/sites"
	"example.com/reframe/internal/machine"
	"example.com/reframe/ptrace"
	"example.com/reframe/test/frametest"
	"example.com/reframe/test/livetest"
)

// traceText traces a program of the object host that is given by its text.
func traceText(t *testing.T, text string, o Options) ([]line, *Summary) {
	t.Helper()
	path := livetest.Module(t, `target datalayout = "e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-f80:128-n8:16:32:64-S128"
target triple = "x86_64-pc-linux-gnu"
declare void @llvm.experimental.stackmap(i64, i32, ...)
`+text)
	p, begin := livetest.ObjectHost(t, livetest.PICObject(t, 19, path), livetest.ObjectHostOptions{})
	m, err := ir.ParseFile(path)
	require.NoError(t, err)
	o.Modules = []*ir.Module{m}
	lines, sum, said := traceAll(t, p.PID, begin, o)
	require.Empty(t, said)
	require.NoError(t, p.Wait())
	return lines, sum
}

// TestTraceAddressThatIsJumpedTo requires that a record belongs only to its call. The stackmap is at the end of its block, so its address is also the
// start of the following loop, from which a thread may reach it with other values.
func TestTraceAddressThatIsJumpedTo(t *testing.T) {
	text := `
define i64 @inner() noinline {
  ret i64 7
}
define i64 @entry(i64 %s) minsize optsize {
entry:
  %x = add i64 %s, 1
  BEFORE
  br label %loop
loop:
  %i = phi i64 [ %x, %entry ], [ %n, %loop ]
  INSIDE
  %n = add i64 %i, 3
  %c = icmp ult i64 %n, 1000
  br i1 %c, label %loop, label %done
done:
  ret i64 %n
}`
	const rounds = 333 // 1, 4 … 997
	lines, sum := traceText(t, strings.NewReplacer("INSIDE", "",
		"BEFORE", "call void (i64, i32, ...) @llvm.experimental.stackmap(i64 1, i32 0, i64 %x)").Replace(text), Options{})
	require.Len(t, lines, rounds)
	require.EqualValues(t, rounds, sum.Unavailable)
	for _, l := range lines {
		require.EqualValues(t, 1, l.record.ID)
		require.Empty(t, l.slots)
	}

	lines, sum = traceText(t, strings.NewReplacer("INSIDE", "call void (i64, i32, ...) @llvm.experimental.stackmap(i64 1, i32 0, i64 %i)",
		"BEFORE", `%y = call i64 @inner() "statepoint-id"="2" [ "deopt"(i64 %x) ]`).Replace(text), Options{})
	require.Len(t, lines, 1+rounds)
	require.Zero(t, sum.Unavailable)
	require.Equal(t, frame.Record{ID: 2, Site: "statepoint", Offset: lines[0].record.Offset, Moment: frame.Before}, lines[0].record)
	require.Equal(t, []string{"%x=1"}, valuesOf(lines[0]))
	require.Equal(t, []string{"%i=1"}, valuesOf(lines[1]))
	require.Equal(t, []string{"%i=997"}, valuesOf(lines[rounds]))
}

// TestTraceRecordsAtOneAddress requires that two records at one address are two exits at one hit.
func TestTraceRecordsAtOneAddress(t *testing.T) {
	text := `
define i64 @entry(i64 %s) {
  %x = add i64 %s, 5
  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 1, i32 0, i64 %s)
  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 2, i32 0, i64 %x, i32 3)
  ret i64 %x
}`
	lines, sum := traceText(t, text, Options{})
	require.Len(t, lines, 2)
	require.Equal(t, lines[0].offset, lines[1].offset)
	require.Equal(t, []uint64{1, 1}, []uint64{lines[0].number, lines[1].number})
	require.Equal(t, []string{"%s=0"}, valuesOf(lines[0]))
	require.Equal(t, []string{"%x=5", "=3"}, valuesOf(lines[1]))
	require.EqualValues(t, 2, sum.Exits)
	lines, _ = traceText(t, text, Options{ExitFilter: ExitFilter{Records: []uint64{2}}})
	require.Len(t, lines, 1)
	require.EqualValues(t, 2, lines[0].record.ID)
}

// TestTraceStatepointWithPatchBytes requires that the record of a statepoint with patch bytes, which has no call, is valid at its end.
func TestTraceStatepointWithPatchBytes(t *testing.T) {
	lines, sum := traceText(t, `
declare void @callee()
define i64 @entry(i64 %s) {
  %x = add i64 %s, 5
  call void @callee() "statepoint-id"="9" "statepoint-num-patch-bytes"="8" [ "deopt"(i64 %x) ]
  ret i64 %x
}`, Options{})
	require.Len(t, lines, 1)
	require.Zero(t, sum.Unavailable)
	require.Equal(t, frame.Record{ID: 9, Site: "statepoint", Offset: lines[0].offset, Moment: frame.After}, lines[0].record)
	require.Equal(t, []string{"%x=5"}, valuesOf(lines[0]))
}

// TestTracepointReads requires that adjacent memory is read at once.
func TestTracepointReads(t *testing.T) {
	at := func(reg machine.DWARFReg, offset int32, size uint16) stackmap.Location {
		return stackmap.Location{Kind: stackmap.Indirect, Reg: reg, Offset: offset, Size: size}
	}
	const rbp, rsp, xmm1 = 6, 7, 18
	for name, c := range map[string]struct {
		locations []stackmap.Location
		want      []ptrace.Read
		whole     bool
	}{
		"none":            {[]stackmap.Location{{Kind: stackmap.Register, Reg: 3, Size: 8}, {Kind: stackmap.Constant}}, []ptrace.Read{}, false},
		"one":             {[]stackmap.Location{at(rsp, 16, 8)}, []ptrace.Read{{Reg: rsp, Offset: 16, Size: 8}}, false},
		"neighbours":      {[]stackmap.Location{at(rsp, 16, 8), at(rsp, 8, 4), at(rsp, 0, 8)}, []ptrace.Read{{Reg: rsp, Offset: 0, Size: 24}}, false},
		"another base":    {[]stackmap.Location{at(rsp, 0, 8), at(rbp, -8, 8)}, []ptrace.Read{{Reg: rbp, Offset: -8, Size: 8}, {Reg: rsp, Offset: 0, Size: 8}}, false},
		"far":             {[]stackmap.Location{at(rsp, 0, 8), at(rsp, 1000, 8)}, []ptrace.Read{{Reg: rsp, Offset: 0, Size: 8}, {Reg: rsp, Offset: 1000, Size: 8}}, false},
		"one in another":  {[]stackmap.Location{at(rsp, 0, 64), at(rsp, 8, 8)}, []ptrace.Read{{Reg: rsp, Offset: 0, Size: 64}}, false},
		"the ends":        {[]stackmap.Location{at(rsp, -1<<31, 8), at(rsp, 1<<31-1, 8)}, []ptrace.Read{{Reg: rsp, Offset: -1 << 31, Size: 8}, {Reg: rsp, Offset: 1<<31 - 1, Size: 8}}, false},
		"too large":       {[]stackmap.Location{at(rsp, 0, 8192)}, []ptrace.Read{{Reg: rsp, Offset: 0, Size: 8192}}, true},
		"no general base": {[]stackmap.Location{at(xmm1, 0, 8)}, []ptrace.Read{}, false},
		"no size":         {[]stackmap.Location{at(rsp, 0, 0)}, []ptrace.Read{}, false},
	} {
		t.Run(name, func(t *testing.T) {
			p := &Tracepoint{match: &deopt.Match{Entry: sites.RecordEntry{Record: &stackmap.Record{Locations: c.locations}}}}
			amd64, known := machine.ByName("amd64")
			require.True(t, known)
			p.plan(amd64)
			require.Equal(t, c.want, append([]ptrace.Read{}, p.reads...))
			require.Equal(t, c.whole, p.whole)
			require.False(t, p.wide)
		})
	}
	var many []stackmap.Location
	for n := range int32(65) {
		many = append(many, at(rsp, 100*n, 8))
	}
	p := &Tracepoint{match: &deopt.Match{Entry: sites.RecordEntry{Record: &stackmap.Record{Locations: many}}}}
	amd64, _ := machine.ByName("amd64")
	p.plan(amd64)
	require.True(t, p.whole)
	p = &Tracepoint{match: &deopt.Match{Entry: sites.RecordEntry{Record: &stackmap.Record{Locations: []stackmap.Location{{Kind: stackmap.Register, Reg: xmm1, Size: 16}}}}}}
	p.plan(amd64)
	require.True(t, p.wide)
}

// TestTraceValueThatIsRecordedTwice requires that a value that a record holds twice, with different contents, is not shown.
func TestTraceValueThatIsRecordedTwice(t *testing.T) {
	path := livetest.Module(t, `target triple = "x86_64-pc-linux-gnu"
declare void @llvm.experimental.stackmap(i64, i32, ...)
@five = global i64 5
define i64 @entry(i64 %s) {
  %x = load volatile i64, ptr @five
  %y = load volatile i64, ptr @five
  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 1, i32 0, i64 %x, i64 %s, i64 %x, i64 %y)
  ret i64 %x
}`)
	object := frametest.Remapped(t, livetest.PICObject(t, 19, path), func(b *stackmap.Blob) {
		l := b.Functions[0].Records[0].Locations
		l[2] = l[1]
	})
	p, begin := livetest.ObjectHost(t, object, livetest.ObjectHostOptions{})
	m, err := ir.ParseFile(path)
	require.NoError(t, err)
	lines, sum, _ := traceAll(t, p.PID, begin, Options{Options: deopt.Options{Modules: []*ir.Module{m}}})
	require.Len(t, lines, 1)
	require.Equal(t, uint64(2), sum.Unavailable)
	for k, status := range []frame.Status{frame.Missing, frame.OK, frame.Missing, frame.OK} {
		require.Equal(t, status, lines[0].slots[k].Status, lines[0].slots[k].Name)
	}
	require.Contains(t, lines[0].slots[0].Reason, "the record has %x in 2 locations, and they hold different values: 0x5 in ")
	require.NoError(t, p.Wait())
}
