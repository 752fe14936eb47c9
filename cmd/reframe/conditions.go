package main

import "github.com/spf13/cobra"

// conditionsTopic is what `reframe help conditions` shows.
func conditionsTopic() *cobra.Command {
	return &cobra.Command{
		Use:   "conditions",
		Short: "What the conditions of --stop-at are made of",
		Long: `A condition compares slots of the frame that is left, with numbers or with each other:

  %i > 100 && (%acc == 0x10 || %acc < %i * 2)
  loc0 & 0xff != 0 && !(#1 == -1)
  %flag == true

A slot is called as the output calls it, with % or without: %i, i, %"a name", loc0; #0 is
the first one. A name with - in it needs the quotation marks. Numbers are decimal, 0x, 0o,
0b or floating-point; inf and nan are numbers. Operators, the tighter first:

  - !                   minus; not, before a comparison in parentheses
  * / %
  + -
  << >>
  &
  ^
  |
  == != < <= > >=
  &&
  ||

so & ^ | are tighter than comparisons, as in Python and unlike C.

Integers are of any size, and nothing overflows: %i + 1 of the largest i64 is 2^63, and
& 0xffffffff cuts off what is above 32 bits. A slot of iN is signed; a pointer, and a slot
without a type, is not. / goes towards zero, % has the sign of what is divided, >> keeps
the sign. A slot that is compared by == or != with a written number may be meant by its
bits: an i8 of 0x80 is -128 and 128. Two slots of one width are equal where their bits are.
A float is the number that the output shows; together with an integer it makes a float.

Where a value is unavailable, what depends on it is neither true nor false, and the exit
does not count: true || it is true, false && it is false. How often that was so, the
summary says. A name that no site of the modules and layouts has is refused at once.`,
	}
}
