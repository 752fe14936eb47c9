package html

import "example.com/reframe/internal/machine"

// Scale is the stack drawn to scale. Lengths are in thousandths of the whole stack.
type Scale struct {
	Bytes uint64
	Bands []Bar
	Marks []Bar
}

// Bar is a rectangle on the scale: the band of a frame, or the mark of a value.
type Bar struct {
	X, Width  float64
	Text      string // the label, if the band has room for it
	Says      string
	To        string
	Keys, Via string
	Tint      int // adjacent bands have different tints
	Explained bool
}

// thinnest is the least width of a visible mark.
const thinnest = 1.5

// charWidth is the approximate width of a character in thousandths of the scale.
const charWidth = 8.5

// scale draws the shown bands, and the positions of values in them.
func (s *stacker) scale() *Scale {
	if len(s.out.Bands) == 0 {
		return nil
	}
	low, high := s.out.Bands[0].Low, s.out.Bands[len(s.out.Bands)-1].High
	out := &Scale{Bytes: uint64(high - low)}
	place := func(from, to machine.Addr) (x, width float64) {
		return 1000 * float64(from-low) / float64(out.Bytes), 1000 * float64(to-from) / float64(out.Bytes)
	}
	for n, b := range s.out.Bands {
		bar := Bar{To: "#" + b.ID(), Says: b.Says(), Tint: n % 2, Explained: b.Explained}
		bar.X, bar.Width = place(b.Low, b.High)
		for _, text := range []string{b.Says(), b.Title()} {
			if float64(len(text))*charWidth < bar.Width {
				bar.Text = text
				break
			}
		}
		out.Bands = append(out.Bands, bar)
	}
	for _, x := range s.spans {
		if x.Start < low || x.End > high || !s.out.anchor[x.k] {
			continue
		}
		bar := Bar{To: "#stack-" + key(x.k), Says: s.at.called(x.k)}
		if x.via {
			bar.Via = key(x.k)
		} else {
			bar.Keys = key(x.k)
		}
		bar.X, bar.Width = place(x.Start, x.End)
		bar.Width = max(bar.Width, thinnest)
		out.Marks = append(out.Marks, bar)
	}
	return out
}
