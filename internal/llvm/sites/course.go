package sites

// Course holds the orders in which the places of a function may come: its sites by the module, or its records by the code. Place 0 is the entry.
// Where the code is not fully known, a course allows more than can happen, and never less.
type Course struct {
	follows  [][]int32 // for each place, the places that may be the next
	anywhere []bool    // any place may be the next, whatever the next two fields hold
	leaves   []bool    // the function may be left before another place comes
	stays    []bool    // it may run forever before another place comes
	ends     []bool    // the code after it is unknown: any continuation is possible
}

func newCourse(places int) *Course {
	return &Course{make([][]int32, places), make([]bool, places), make([]bool, places), make([]bool, places), make([]bool, places)}
}

// MaxPairs bounds how many pairs of sites and records are compared, MaxSteps the work of following both, and maxAllSteps the work for all
// functions.
const (
	MaxPairs    = 1 << 22
	MaxSteps    = 1 << 25
	maxAllSteps = 1 << 28
)

// Together walks two courses of one function, that of its code and that of its module. Compiled code reaches its records as the module reaches
// their sites, however often blocks were duplicated, merged or moved. may[r][s] means that record r may be that of site s. Together removes the
// pairs that are impossible: from the entry there is no common way to both, or none onward from there. budget is the number of remaining steps; ok
// is false if it was exceeded.
func Together(code, module *Course, may [][]bool, budget *int) (ok bool) {
	for *budget >= 0 {
		reached := reach(code, module, may, budget)
		changed := false
		for r := range may {
			for s, had := range may[r] {
				if had && !reached[r][s] {
					may[r][s] = false
				}
			}
		}
		for again := true; again && *budget >= 0; {
			again = false
			for r := range may {
				*budget -= len(may[r])
				for s, can := range may[r] {
					if can && !goesOn(code, module, may, r, s, budget) {
						may[r][s], again, changed = false, true, true
					}
				}
			}
		}
		if !changed {
			return *budget >= 0
		}
	}
	return false
}

// reach returns the pairs to which both come from the entry.
func reach(code, module *Course, may [][]bool, budget *int) [][]bool {
	reached := make([][]bool, len(may))
	for r := range may {
		reached[r] = make([]bool, len(may[r]))
	}
	type pair struct{ r, s int32 }
	var work []pair
	if may[0][0] {
		reached[0][0] = true
		work = append(work, pair{0, 0})
	}
	for len(work) > 0 && *budget >= 0 {
		at := work[len(work)-1]
		work = work[:len(work)-1]
		for _, s := range module.follows[at.s] {
			visit := func(r int32) {
				if *budget--; may[r][s] && !reached[r][s] {
					reached[r][s] = true
					work = append(work, pair{r, s})
				}
			}
			if code.anywhere[at.r] {
				for r := 1; r < len(may); r++ {
					visit(int32(r))
				}
				continue
			}
			for _, r := range code.follows[at.r] {
				visit(r)
			}
		}
	}
	return reached
}

// goesOn reports whether both may continue from a pair in the same way.
func goesOn(code, module *Course, may [][]bool, r, s int, budget *int) bool {
	if *budget--; module.ends[s] || code.ends[r] ||
		(code.leaves[r] || code.anywhere[r]) && module.leaves[s] || (code.stays[r] || code.anywhere[r]) && module.stays[s] {
		return true
	}
	for _, next := range module.follows[s] {
		if code.anywhere[r] {
			for k := 1; k < len(may); k++ {
				if *budget--; may[k][next] {
					return true
				}
			}
			continue
		}
		for _, k := range code.follows[r] {
			if *budget--; may[k][next] {
				return true
			}
		}
	}
	return false
}
