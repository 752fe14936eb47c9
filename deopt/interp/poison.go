package interp

// Poison and undefined bits are told apart in the word itself: an undefined bit
// has u set and v clear, a poison bit has both set. Poison is a matter of whole
// scalars (LangRef, "Poison Values"), so where one bit of a scalar is poison all
// of them are, and one bit is enough to look at.

// poisonOf is poison of the bits of a mask.
func poisonOf(m uint64) word { return word{m, m} }

// isPoison reports whether a word belongs to a scalar that is poison.
func isPoison(w word) bool { return w.v&w.u != 0 }

// anyPoison reports whether a scalar is poison, or some scalar of many.
func anyPoison(list ...[]word) bool {
	for _, words := range list {
		for _, w := range words {
			if isPoison(w) {
				return true
			}
		}
	}
	return false
}

// poisonWords makes a scalar poison.
func poisonWords(w []word, width int) {
	for i := range w {
		w[i] = poisonOf(maskAt(width, i))
	}
}

// undefWords makes each bit of a scalar undefined.
func undefWords(w []word, width int) {
	for i := range w {
		w[i] = word{u: maskAt(width, i)}
	}
}

// unknownWords is a result that cannot be computed bit by bit from operands of
// which some bit is not known: poison where one of them is, else undefined.
func unknownWords(dst []word, width int, operands ...[]word) {
	if anyPoison(operands...) {
		poisonWords(dst, width)
		return
	}
	undefWords(dst, width)
}

// loaded is a word of a scalar as memory gave it: one poison bit in the whole
// makes poison of it (LangRef, "load").
func loaded(w word, m uint64) word {
	if isPoison(w) {
		return poisonOf(m)
	}
	return w
}

// poison is a value of this shape that is all poison.
func (s *shape) poison() []word {
	w := s.undefined()
	poisonAll(w)
	return w
}

// fillPoison makes poison of every scalar of a value of this shape.
func (s *shape) fillPoison(w []word) {
	s.fillUndefined(w)
	poisonAll(w)
}

func poisonAll(w []word) {
	for i := range w {
		w[i].v = w[i].u
	}
}

// notKnown returns the error of a run that would depend on bits that are not known. The error says whether they are poison or undefined.
func notKnown(w []word, format string, args ...any) error {
	if anyPoison(w) {
		return troublef(KindUndef, format+" is poison", args...)
	}
	return undefined(format, args...)
}
