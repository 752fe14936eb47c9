package condition

import "testing"

// BenchmarkOf evaluates a condition as trace does at each exit.
func BenchmarkOf(b *testing.B) {
	all := slots()
	for _, text := range []string{"%i == 25", "%i > 100 && (%b == 0x10 || %i < %m * 2)", `%"a b" + 1 == 8 && !(%d > 3.5) || %gone == 1`} {
		c, err := Parse(text)
		if err != nil {
			b.Fatal(err)
		}
		b.Run(text, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				c.Of(all)
			}
		})
	}
}
