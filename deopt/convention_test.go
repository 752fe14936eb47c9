package deopt

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"reframe/deopt/frame"
	"reframe/deopt/ir"
	"reframe/internal/livetest"
)

// A chain of calls of one convention, below a site whose values LLVM keeps in registers: v0 to v9. @middle changes
// registers and saves what it has to; @plain is a C function in between, for which @over has to save all that its convention keeps; @leaf has
// a stackmap of what all values were made of.
const conventionChain = `target triple = "x86_64-pc-linux-gnu"
declare void @llvm.experimental.stackmap(i64, i32, ...)
@now = global i64 0
@sink = global i64 0
define CC void @leaf() noinline uwtable {
  %n = load volatile i64, ptr @now
  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 1, i32 0, i64 %n)
  ret void
}
define CC void @middle() noinline uwtable {
  %a = load volatile i64, ptr @now
  %b = load volatile i64, ptr @now
  %c = load volatile i64, ptr @now
  call CC void @leaf()
  %d = mul i64 %a, %b
  %e = xor i64 %d, %c
  store volatile i64 %e, ptr @sink
  ret void
}
define void @plain() noinline uwtable {
  %a = load volatile i64, ptr @now
  call CC void @leaf()
  store volatile i64 %a, ptr @sink
  ret void
}
define CC void @over() noinline uwtable {
  call void @plain()
  call void asm sideeffect "", "~{xmm1},~{xmm9},~{rcx},~{r9},~{r13}"()
  ret void
}
define i64 @entry(i64 %s) uwtable {
  store volatile i64 %s, ptr @now
VALUES  call CC void @middle() "statepoint-id"="7" [ "deopt"(LIVE) ]
  call CC void @over() "statepoint-id"="8" [ "deopt"(LIVE) ]
  %r0 = add i64 %s, 0
USES  ret i64 %r10
}
`

// chainOf is the text for a convention.
func chainOf(cc string) string {
	var values, uses strings.Builder
	var live []string
	for k := range 10 {
		fmt.Fprintf(&values, "  %%m%d = mul i64 %%s, %d\n  %%v%d = add i64 %%m%d, %d\n", k, 2*k+3, k, k, k)
		fmt.Fprintf(&uses, "  %%r%d = xor i64 %%r%d, %%v%d\n", k+1, k, k)
		live = append(live, fmt.Sprintf("i64 %%v%d", k))
	}
	return strings.NewReplacer("CC ", cc+" ", "VALUES", values.String(), "LIVE", strings.Join(live, ", "), "USES", uses.String()).Replace(conventionChain)
}

// Values in registers that the callee's convention keeps are read, through as many frames of it as there are, and they are what the program
// computed. The conventions that keep less than C's change nothing that is read wrongly.
func TestConventionsKeepRegisters(t *testing.T) {
	read := map[string]int{}
	for _, version := range []int{14, 16, 19, 22} {
		for _, cc := range []string{"ccc", "preserve_mostcc", "preserve_allcc", "coldcc", "x86_regcallcc", "swiftcc", "swifttailcc", "tailcc", "fastcc", "win64cc", "anyregcc"} {
			if version == 22 && (cc == "swifttailcc" || cc == "anyregcc") {
				continue // llc 22 runs out of registers
			}
			path := filepath.Join(t.TempDir(), "chain.ll")
			require.NoError(t, os.WriteFile(path, []byte(chainOf(cc)), 0o600))
			flags := []string{"-O2", "-use-registers-for-deopt-values"}
			m, err := ir.ParseFile(path)
			require.NoError(t, err)
			s := launched(t, livetest.ObjectHostCommand(t, livetest.PICObject(t, version, path, flags...), livetest.ObjectHostOptions{Rounds: 3}))
			ctx, cancel := context.WithTimeout(context.Background(), livetest.Patience)
			exits := 0
			_, err = Trace(ctx, s, TraceOptions{Options: Options{Modules: []*ir.Module{m}}, ExitFilter: ExitFilter{Records: []uint64{1}}, Full: true, Wait: true, Warn: func(string) {}}, func(x *Exited) error {
				exits++
				about := fmt.Sprintf("LLVM %d, %s, exit %d", version, cc, exits)
				now, err := strconv.ParseInt(x.Frame.Slots[0].Value, 10, 64)
				require.NoError(t, err, about)
				entry := x.Frames[2]
				if entry.Function != "entry" { // below it are @leaf, @plain and @over
					entry = x.Frames[3]
				}
				require.Equal(t, "entry", entry.Function, about)
				require.Len(t, entry.Slots, 10, about)
				for k, slot := range entry.Slots {
					if slot.Status != frame.OK {
						t.Logf("%s: %s: %s", about, slot.Name, slot.Reason)
						continue
					}
					require.Equal(t, strconv.FormatInt(now*int64(2*k+3)+int64(k), 10), slot.Value, "%s %s", about, slot.Name)
					read[fmt.Sprintf("%d %s", version, cc)]++
				}
				return nil
			})
			cancel()
			require.NoError(t, err)
			require.NoError(t, s.Detach())
			require.Positive(t, exits)
			assert.Equal(t, exits*10, read[fmt.Sprintf("%d %s", version, cc)], "LLVM %d, %s", version, cc)
		}
	}
}
