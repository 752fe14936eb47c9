package sites

import (
	"example.com/reframe/internal/machine"
	"example.com/reframe/internal/machine/isa"
)

// stretch is the code of one function.
type stretch struct {
	start machine.Addr
	code  []byte
	step  func(code []byte, at machine.Addr) isa.Step
	// moved reports whether a linker fills in a field of an instruction, given its offset and size. Its target is then outside the function.
	moved func(offset, size int) bool
	// parts reports whether the function may have parts outside of this code, from which a jump may lead back.
	parts bool
	// pads reports whether calls may return to landing pads.
	pads bool

	steps map[int]isa.Step
}

// point is a record of the function.
type point struct {
	offset int
	// called reports whether the record follows a call: a jump to its address does not reach it. starts reports whether the record's own code begins at
	// its address, as for a patchpoint: a jump to its address reaches it. For a stackmap both may be false, and it is unknown whether a jump reaches it.
	called, starts bool
}

// course returns the orders in which a function's code reaches its records; place k+1 is points[k]. points are in the order of the section. calls maps the
// end of each call in the code to its start. why is set if the code cannot be decoded.
func (f *stretch) course(points []point, budget *int) (c *Course, calls map[int]int, why string) {
	w := &codeCourse{stretch: f, Course: newCourse(len(points) + 1), points: points, at: map[int][]int32{}, calls: map[int]int{}, budget: budget}
	f.steps = map[int]isa.Step{}
	for k, p := range points {
		if p.offset < 0 || p.offset > len(f.code) {
			return nil, nil, "a record is outside of its symbol"
		}
		w.at[p.offset] = append(w.at[p.offset], int32(k+1))
	}
	w.from(0, 0, w.at[0])
	for k, p := range points {
		same := w.at[p.offset]
		for n, place := range same {
			if place == int32(k+1) {
				w.from(k+1, p.offset, same[n+1:])
			}
		}
		if w.why != "" {
			return nil, nil, w.why
		}
	}
	return w.Course, w.calls, w.why
}

type codeCourse struct {
	*stretch
	*Course
	points []point
	at     map[int][]int32 // places by offset
	calls  map[int]int     // the start of each call, by its end
	budget *int
	why    string
}

// from follows the code after a place. next are the later places at the same offset.
func (w *codeCourse) from(place, offset int, next []int32) {
	if len(next) > 0 {
		w.follow(place, next[0])
		return
	}
	// Search depth first: a jump back to an instruction on the current path is a loop without a place.
	type open struct {
		behind []int
		next   int
	}
	const following, followed = 1, 2
	state := map[int]byte{offset: following}
	path := []open{{behind: w.behind(place, offset)}}
	offsets := []int{offset}
	for len(path) > 0 && w.why == "" {
		top := &path[len(path)-1]
		if top.next == len(top.behind) {
			state[offsets[len(offsets)-1]] = followed
			path, offsets = path[:len(path)-1], offsets[:len(offsets)-1]
			continue
		}
		to := top.behind[top.next]
		top.next++
		switch state[to] {
		case following:
			w.stays[place] = true
		case followed:
		default:
			if *w.budget--; *w.budget < 0 {
				w.why = tooMuch
				return
			}
			state[to] = following
			path, offsets = append(path, open{behind: w.behind(place, to)}), append(offsets, to)
		}
	}
}

const tooMuch = "the function is too large"

func (w *codeCourse) follow(place int, next int32) {
	for _, known := range w.follows[place] {
		if known == next {
			return
		}
	}
	w.follows[place] = append(w.follows[place], next)
}

// behind returns the offsets of the instructions that may run directly after the one at an offset, unless a place comes first. It records the places
// that may be next.
func (w *codeCourse) behind(place, offset int) (on []int) {
	if offset == len(w.code) { // the code ends with a call, which never returns
		w.ends[place] = true
		return nil
	}
	s, known := w.steps[offset]
	if !known {
		s = w.step(w.code[offset:], w.start+machine.Addr(offset))
		w.steps[offset] = s
	}
	if s.Size == 0 || offset+s.Size > len(w.code) {
		w.why = "an instruction of the function is not known"
		return nil
	}
	end := offset + s.Size
	fall := func() {
		if here := w.at[end]; len(here) > 0 {
			w.follow(place, here[0])
			return
		}
		on = append(on, end)
	}
	jump := func() {
		if w.moved(offset, s.Size) || s.Target < w.start || s.Target >= w.start+machine.Addr(len(w.code)) {
			w.leaves[place] = true
			w.anywhere[place] = w.anywhere[place] || w.parts
			return
		}
		on = append(on, w.arrive(place, int(s.Target-w.start))...)
	}
	switch s.How {
	case isa.StepOn:
		fall()
	case isa.StepCall:
		w.calls[end] = offset
		w.anywhere[place] = w.anywhere[place] || w.pads
		fall()
	case isa.StepBranch:
		fall()
		jump()
	case isa.StepJump:
		jump()
	case isa.StepComputed:
		w.anywhere[place], w.leaves[place] = true, true
	case isa.StepReturn:
		w.leaves[place] = true
	case isa.StepTrap:
		w.ends[place] = true
	}
	return on
}

// arrive records the places that a jump to an offset reaches, and returns the offset if the jump may skip them.
func (w *codeCourse) arrive(place, offset int) (on []int) {
	here := w.at[offset]
	for k := len(here) - 1; k >= 0; k-- {
		if w.points[here[k]-1].called {
			here = here[k+1:]
			break
		}
	}
	for _, next := range here {
		w.follow(place, next)
		if w.points[next-1].starts {
			return nil
		}
	}
	return []int{offset}
}
