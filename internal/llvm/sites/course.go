package sites

// Course holds the possible orders of a function's places: its sites according to the module, or its records according to the code. Place 0 is the entry.
// If the code is not fully known, a course allows too many orders, but never too few.
type Course struct {
	follows  [][]int32 // for each place, the possible next places
	anywhere []bool    // any place may be next, in addition to the following fields
	leaves   []bool    // the function may return before it reaches another place
	stays    []bool    // the function may run forever without reaching another place
	ends     []bool    // the code after the place is unknown, so any continuation is possible
}

func newCourse(places int) *Course {
	return &Course{make([][]int32, places), make([]bool, places), make([]bool, places), make([]bool, places), make([]bool, places)}
}

// MaxPairs limits the pairs of sites and records that are compared, MaxSteps the work for one function, and maxAllSteps the work for all functions.
const (
	MaxPairs    = 1 << 22
	MaxSteps    = 1 << 25
	maxAllSteps = 1 << 28
)

// Together walks two courses of one function: that of its code and that of its module. Compiled code reaches its records in the order in which the
// module reaches their sites, even if blocks were duplicated, merged or moved. may[r][s] reports whether record r may belong to site s. Together
// removes impossible pairs, which have no common path from the entry or no common continuation. budget is the number of remaining steps; ok is false
// if it was exceeded.
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

// reach returns the pairs of a record and a site that code and module can reach together from the entry, through pairs that may allows.
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

// goesOn reports whether a pair has a common continuation.
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
