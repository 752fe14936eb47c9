package interp_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/deopt/interp"

	"example.com/reframe/test/livetest"
)

// undefinedCompare returns a program that prints the result of icmp for an i16 with one undefined byte.
func undefinedCompare(memory, predicate string, than int) string {
	return fmt.Sprintf(`
@g = global { i8, i8 } { %s }
declare i32 @putchar(i32)
define i32 @main() {
  %%a = load i16, ptr @g, align 1
  %%c = icmp %s i16 %%a, %d
  %%z = zext i1 %%c to i32
  %%d = or i32 %%z, 48
  %%r = call i32 @putchar(i32 %%d)
  ret i32 0
}
`, memory, predicate, than)
}

// TestOrderIsKnownWhereUndefinedBitsHaveNoSay requires a known result of icmp if no value of the undefined bits changes it. csmith's seed 181 at -O1
// has such a comparison: of a field of a struct, with undefined padding in the bits below it.
func TestOrderIsKnownWhereUndefinedBitsHaveNoSay(t *testing.T) {
	livetest.Slow(t)
	const low, high, negative = "i8 undef, i8 5", "i8 5, i8 undef", "i8 undef, i8 -123"
	for _, c := range []struct {
		memory, predicate string
		than              int
		want              string // "" if undefined
	}{
		{low, "ult", 0x500, "0"}, {low, "ult", 0x501, ""}, {low, "ult", 0x5ff, ""}, {low, "ult", 0x600, "1"},
		{low, "ule", 0x4ff, "0"}, {low, "ule", 0x500, ""}, {low, "ule", 0x5ff, "1"},
		{low, "ugt", 0x4ff, "1"}, {low, "ugt", 0x500, ""}, {low, "ugt", 0x5fe, ""}, {low, "ugt", 0x5ff, "0"},
		{low, "uge", 0x500, "1"}, {low, "uge", 0x501, ""}, {low, "uge", 0x600, "0"},
		{low, "slt", -1, "0"}, {low, "slt", 0x600, "1"}, {low, "sgt", -1, "1"}, {low, "sgt", 0x580, ""},
		{low, "eq", 0x600, "0"}, {low, "ne", 0x600, "1"}, {low, "eq", 0x500, ""}, {low, "ne", 0x500, ""},
		{negative, "slt", 0, "1"}, {negative, "sge", 0, "0"}, {negative, "sgt", -0x7b01, "1"}, {negative, "sgt", -0x7b00, ""},
		{negative, "ult", 0, "0"}, {negative, "ugt", 0x7fff, "1"},
		{high, "slt", 0, ""}, {high, "ult", 5, "0"}, {high, "ult", 6, ""}, {high, "uge", 5, "1"}, {high, "sge", -32768, "1"},
		{high, "sgt", 0x7f05, "0"}, {high, "slt", -0x7ffb, "0"}, {high, "sle", -0x7ffb, ""}, {high, "eq", 4, "0"},
	} {
		t.Run(fmt.Sprintf("%s %s %d", c.memory, c.predicate, c.than), func(t *testing.T) {
			src := undefinedCompare(c.memory, c.predicate, c.than)
			if c.want != "" {
				require.Equal(t, c.want, interpreted(t, src).Output)
				sameAsJIT(t, src, "19")
				return
			}
			in, _ := machineOf(t, src)
			_, err := in.Main(context.Background(), nil)
			var stopped *interp.RunError
			require.ErrorAs(t, err, &stopped)
			require.Equal(t, interp.KindUndef, stopped.Kind)
		})
	}
}
