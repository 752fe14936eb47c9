package sites

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/deopt/stackmap"
	"example.com/reframe/internal/llvm/ir"
	"example.com/reframe/internal/machine"
)

// locationsOf parses locations: R8 is a register of eight bytes, I10 a slot of ten, D an address and C-1 a constant. Registers and slots differ, unless they
// have the same letter appended, as in I8a.
func locationsOf(t *testing.T, words string) []stackmap.Location {
	t.Helper()
	var out []stackmap.Location
	for n, word := range strings.Fields(words) {
		l := stackmap.Location{Size: 8, Reg: machine.DWARFReg(n % 16), Offset: int32(8 * n)}
		number, letter := strings.TrimRight(word[1:], "abc"), strings.TrimLeft(word[1:], "0123456789-")
		if letter != "" {
			l.Reg, l.Offset = machine.DWARFReg(letter[0]-'a'), int32(letter[0])
		}
		switch word[0] {
		case 'R':
			l.Kind, l.Offset = stackmap.Register, 0
			_, err := fmt.Sscan(number, &l.Size)
			require.NoError(t, err)
		case 'I':
			l.Kind = stackmap.Indirect
			_, err := fmt.Sscan(number, &l.Size)
			require.NoError(t, err)
		case 'D':
			l.Kind = stackmap.Direct
		case 'C':
			l = stackmap.Location{Kind: stackmap.Constant, Size: 8}
			_, err := fmt.Sscan(number, &l.Offset)
			require.NoError(t, err)
		}
		out = append(out, l)
	}
	return out
}

// TestAlign requires locations that were derived by hand from X86FloatingPoint.cpp and StackMaps.cpp. Operands in x87 registers are missing. A
// statepoint still counts them, so the next fields take their places: the number of gc pointers, the pointers, the number of allocas.
func TestAlign(t *testing.T) {
	const module = `target triple = "TRIPLE"
declare void @llvm.experimental.stackmap(i64, i32, ...)
declare void @llvm.experimental.patchpoint.void(i64, i32, ptr, i32, ...)
declare x86_fp80 @llvm.experimental.patchpoint.f80(i64, i32, ptr, i32, ...)
declare token @llvm.experimental.gc.statepoint.p0(i64, i32, ptr, i32, i32, ...)
declare void @cb()
define void @f(i64 %a, i64 %b, i32 %i, double %d, float %s, x86_fp80 %x, x86_fp80 %y, i80 %w, ptr addrspace(1) %p, { x86_fp80, i64 } %g) gc "statepoint-example" {
  %l = alloca i64
  %n = ptrtoint ptr %l to i64
  CALL
  ret void
}`
	const none = "x86_64-pc-linux-gnu"
	calls := map[string]string{
		"stackmap":   "call void (i64, i32, ...) @llvm.experimental.stackmap(i64 1, i32 0, OPERANDS)",
		"patchpoint": "call void (i64, i32, ptr, i32, ...) @llvm.experimental.patchpoint.void(i64 1, i32 16, ptr @cb, i32 0, OPERANDS)",
		"anyreg":     "call anyregcc void (i64, i32, ptr, i32, ...) @llvm.experimental.patchpoint.void(i64 1, i32 16, ptr @cb, i32 2, OPERANDS)",
		"result":     "%r = call anyregcc x86_fp80 (i64, i32, ptr, i32, ...) @llvm.experimental.patchpoint.f80(i64 1, i32 16, ptr @cb, i32 1, OPERANDS)",
		"statepoint": `%t = call token (i64, i32, ptr, i32, i32, ...) @llvm.experimental.gc.statepoint.p0(i64 1, i32 0, ptr elementtype(void ()) @cb, i32 0, i32 0, i32 0, i32 0) [ "deopt"(OPERANDS) ]`,
		"gc":         `%t = call token (i64, i32, ptr, i32, i32, ...) @llvm.experimental.gc.statepoint.p0(i64 1, i32 0, ptr elementtype(void ()) @cb, i32 0, i32 0, i32 0, i32 0) [ "deopt"(OPERANDS), "gc-live"(ptr addrspace(1) %p, ptr %l) ]`,
	}
	const counts, fit = "live values", "do not match"
	for _, c := range []struct {
		site, operands, locations string
		// want lists the index of the location of each live value, with - for none and ? for an unknown one, then "moved". Otherwise it is
		// the reason why the record does not belong to the site.
		want string
	}{
		{"stackmap", "i64 %a, x86_fp80 %x, i64 %b", "R8 R8", "0 - 1"},
		{"stackmap", "i64 %a, x86_fp80 %x, i64 %b", "R8 I10 R8", "0 1 2"}, // the x86_fp80 was spilled and folded
		{"stackmap", "i64 %a, x86_fp80 %x, i64 %n", "R8 D", "0 - 1"},      // D: llc 14 to 22 record the address of an alloca
		{"stackmap", "i64 %a, x86_fp80 %x, i64 %b", "R8", counts},
		{"stackmap", "i64 %a, x86_fp80 %x, i64 %b", "R8 R8 R8 R8", counts},
		{"stackmap", "i64 %a, x86_fp80 %x, i64 %b", "R8 R4", fit},
		{"stackmap", "x86_fp80 %x, i64 %a, x86_fp80 %y", "I10 R8", "0 1 -"},
		{"stackmap", "x86_fp80 %x, i64 %a, x86_fp80 %y", "R8 I10", "- 0 1"},
		{"stackmap", "x86_fp80 %x, x86_fp80 %y, i64 %a", "I10 R8", "? ? 1"},
		{"stackmap", "x86_fp80 %x, i64 5, x86_fp80 %y, i64 6", "C5 C6", "- 0 - 1"},
		{"stackmap", "x86_fp80 %x, i64 5, x86_fp80 %y, i64 6", "C6 C5", fit},
		{"stackmap", "x86_fp80 %x, i80 %w, i64 %a", "I10 R8", "- 0 1"}, // the slot may belong to either operand
		{"stackmap", "{ x86_fp80, i64 } %g, i64 %a", "R8", "- 0"},
		{"stackmap", "double %d, i64 %a", "R8", counts}, // SSE is the default
		{"patchpoint", "ptr %l, x86_fp80 %x, i32 %i", "D R4", "0 - 1"},
		{"patchpoint", "ptr %l, x86_fp80 %x, i32 %i", "R8 R4", fit},
		// The result and the arguments of anyregcc come first.
		{"anyreg", "x86_fp80 %x, i64 5, i64 %b", "R8 R8", "1"},
		{"anyreg", "i64 %a, i64 5, x86_fp80 %x, i64 %b", "R8 R8 R8", "- 2"},
		{"anyreg", "i64 %a, i64 5, x86_fp80 %x, i64 %b", "R8 R8 I10 R8", "2 3"},
		{"result", "i64 %a, i64 %b", "R8 R8", "1"},

		{"statepoint", "i64 %a, x86_fp80 %x, i64 %b", "C0 C0 C3 I8 I10 I8", "0 1 2"},
		{"statepoint", "i64 %a, x86_fp80 %x, i64 %b", "C0 C0 C3 I8 I8 C0", "0 - 1 moved"},
		{"statepoint", "i64 %a, x86_fp80 %x, i64 %b", "C0 C0 C3 I8 I10 C0", "0 1 2"}, // %b was folded to 0
		{"statepoint", "i64 %a, x86_fp80 %x, i64 %b", "C0 C0 C3 I8 I4 C0", fit},
		{"statepoint", "i64 %a, x86_fp80 %x, i64 %b", "C0 C0 C3 I8 I8 C9", fit}, // the record does not have nine gc pointers
		{"statepoint", "i64 %a, x86_fp80 %x, i64 %b", "C0 C0 C4 I8 I8 C0 C0", counts},
		{"statepoint", "i64 %a, x86_fp80 %x, i64 5, i64 %b", "C0 C0 C4 R8 C5 R8 C0", "0 - 1 2 moved"},
		{"statepoint", "i64 %a, x86_fp80 %x, i64 %b, x86_fp80 %y", "C0 C0 C4 R8 R8 C0 C0", "0 - 1 - moved"},
		{"statepoint", "x86_fp80 %x, x86_fp80 %y, i64 %b", "C0 C0 C3 I10 R8 C0", "? ? 1 moved"},
		{"statepoint", "x86_fp80 %x, x86_fp80 %y, i64 %b", "C0 C0 C3 I10a I10a R8", "0 1 2"},
		// Either %d was in an x87 register, or %b was folded to 0 and the locations are in the order of the operands.
		{"statepoint", "double %d, i64 %a, i64 %b", "C0 C0 C3 I8 I8 C0", "? ? ? moved"},
		{"statepoint", "double %d, i64 %a, i64 %b", "C0 C0 C3 I8a I8a C0", "? 1 ? moved"},
		{"statepoint", "double %d, i64 %a, i64 %b", "C0 C0 C3 I8 I8 I8", "0 1 2"},
		{"statepoint", "double %d, i64 %a, i64 0", "C0 C0 C3 I8 I8 C0", "0 1 2"},
		{"statepoint", "double %d, i64 %a, i64 7", "C0 C0 C3 I8 C7 C0", "- 0 1 moved"},
		{"statepoint", "double %d, float %s, i64 %a", "C0 C0 C3 R16 R8 C0", "? ? ? moved"},
		{"gc", "i64 %a, x86_fp80 %x, i64 %b", "C0 C0 C3 I8 I10 I8 I8 I8 D", "0 1 2"},
		{"gc", "i64 %a, x86_fp80 %x, i64 %b", "C0 C0 C3 I8 I8 C1", "0 - 1 moved"},
		{"gc", "i64 %a, x86_fp80 %x, i64 %b", "C0 C0 C3 I8 I8 C1 I8 C1 C1", "0 - 1 moved"}, // LLVM read the last constants from wrong operands
		{"gc", "i64 %a, x86_fp80 %x, x86_fp80 %y", "C0 C0 C3 I8 C1 I8", "0 - - moved"},
		{"gc", "i64 %a, x86_fp80 %x, x86_fp80 %y", "C0 C0 C3 I8 C1", "0 - - moved"}, // the record ends before the allocas
	} {
		t.Run(c.site+" "+c.operands+" "+c.locations, func(t *testing.T) {
			require.Equal(t, c.want, aligned(t, strings.Replace(module, "TRIPLE", none, 1), strings.Replace(calls[c.site], "OPERANDS", c.operands, 1), c.locations))
		})
	}
	t.Run("32-bit x86", func(t *testing.T) {
		text := strings.Replace(module, "TRIPLE", "i686-pc-linux-gnu", 1)
		for locations, want := range map[string]string{"R4": "- - 0", "R16 R4": "? ? 1", "I8 I4 R4": "0 1 2"} {
			require.Equal(t, want, aligned(t, text, strings.Replace(calls["stackmap"], "OPERANDS", "double %d, float %s, i32 %i", 1), locations), locations)
		}
	})
	t.Run("more than can be told", func(t *testing.T) {
		many := strings.Repeat("x86_fp80 %x, ", 100)
		for _, call := range []string{calls["stackmap"], calls["statepoint"]} {
			words := "R8"
			if strings.Contains(call, "deopt") {
				words = "C0 C0 C101 R8 C0 C0"
			}
			got := aligned(t, strings.Replace(module, "TRIPLE", none, 1), strings.Replace(call, "OPERANDS", many+"i64 %a", 1), words)
			require.Equal(t, 101, strings.Count(got, "?"))
		}
	})
}

// aligned returns the alignment of a site as text. text is a module in whose function @f call is made.
func aligned(t *testing.T, text, call, words string) string {
	t.Helper()
	m, err := ir.Parse("m.ll", []byte(strings.Replace(text, "CALL", call, 1)))
	require.NoError(t, err)
	sites, err := m.Func("f").Sites()
	require.NoError(t, err)
	require.Len(t, sites, 1)
	s := sites[0]
	rec := &stackmap.Record{ID: 1, Locations: locationsOf(t, words)}
	e := RecordEntry{stackmap.Entry{Map: &stackmap.Map{}}, rec}
	a, why := Align(s, e)
	if why != "" {
		for _, known := range []string{"live values", "do not match"} {
			if strings.Contains(why, known) {
				return known
			}
		}
		return why
	}
	var out []string
	for k := range s.Live {
		place := a.Place(k)
		switch place {
		case Absent:
			out = append(out, "-")
		case Ambiguous:
			out = append(out, "?")
		default:
			out = append(out, fmt.Sprint(place))
		}
	}
	if a.Moved {
		out = append(out, "moved")
	}
	return strings.Join(out, " ")
}
