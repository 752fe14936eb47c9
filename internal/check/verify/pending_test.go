package verify

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/deopt"
	"example.com/reframe/internal/llvm/ir"
	"example.com/reframe/test/frametest"
	"example.com/reframe/test/livetest"
)

// manyPending reaches record 1 in each of 40 rounds, and then the records 2 and 3, all in one activation.
const manyPending = `target triple = "x86_64-pc-linux-gnu"
declare void @llvm.experimental.stackmap(i64, i32, ...)
define i64 @entry(i64 %s) {
head:
  br label %loop
loop:
  %i = phi i64 [ 0, %head ], [ %j, %loop ]
  %a = phi i64 [ %s, %head ], [ %b, %loop ]
  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 1, i32 0, i64 %s, i64 %i, i64 %a)
  %m = mul i64 %a, 3
  %b = add i64 %m, %i
  %j = add i64 %i, 1
  %c = icmp ult i64 %j, 40
  br i1 %c, label %loop, label %last
last:
  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 2, i32 0, i64 %b, i64 %s)
  %x = sub i64 %b, %s
  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 3, i32 0, i64 %x)
  %y = sub i64 %x, 9
  ret i64 %y
}
`

// TestVerifyWhileManyArePending requires that exits of other records are verified while many exits of one record are pending, and that skipped exits
// are counted by reason.
func TestVerifyWhileManyArePending(t *testing.T) {
	path := livetest.Module(t, manyPending)
	m, err := ir.ParseFile(path)
	require.NoError(t, err)
	command := livetest.ObjectHostCommand(t, livetest.PICObject(t, 19, path, "-O1"), livetest.ObjectHostOptions{Rounds: 1})
	summary, list := verified(t, command, Options{Options: deopt.Options{Modules: []*ir.Module{m}}})
	require.Equal(t, uint64(16+2), summary.Same)
	require.Equal(t, map[string]uint64{"16 exits were pending, and 4 of the same record among them": 24}, summary.SkippedWhy)
	require.Empty(t, summary.NeverVerified)
	numbers := map[uint64][]uint64{}
	for _, v := range list {
		numbers[v.Exit.Frame.Record.ID] = append(numbers[v.Exit.Frame.Record.ID], v.Number)
	}
	require.Equal(t, []uint64{41}, numbers[2])
	require.Equal(t, []uint64{42}, numbers[3])

	// A wrong location in the second record is found without --record.
	_, wrong := frametest.Written(t, "wrong.ll", strings.Replace(manyPending, "i64 2, i32 0, i64 %b, i64 %s", "i64 2, i32 0, i64 %s, i64 %b", 1))
	_, list = verified(t, command, Options{Options: deopt.Options{Modules: []*ir.Module{wrong}}})
	differ := map[uint64]bool{}
	for _, v := range list {
		if v.Status == Different {
			differ[v.Exit.Frame.Record.ID] = true
		}
	}
	require.Equal(t, map[uint64]bool{2: true}, differ)

	// Exits are also skipped by flags and by the limit.
	summary, _ = verified(t, command, Options{Options: deopt.Options{Modules: []*ir.Module{m}}, Skip: 5, Limit: 3})
	require.Equal(t, map[string]uint64{skippedByFlags: 5, skippedByLimit: 34}, summary.SkippedWhy)
	require.Equal(t, summary.Skipped, uint64(5+34))
}

// TestVerifyNamesRecordsThatAreNeverVerified requires that a record whose exits are all skipped is named.
func TestVerifyNamesRecordsThatAreNeverVerified(t *testing.T) {
	s := skippedRecords{recordKey{"f", 7}: {0, 12}, recordKey{"f", 3}: {1, 5}, recordKey{"e", 9}: {0, 1}, recordKey{"f", 4}: {0, 0}}
	require.Equal(t, []SkippedRecord{{"e", 9, 1}, {"f", 7, 12}}, s.never())
}
