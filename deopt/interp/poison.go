package interp

// A word distinguishes poison from undefined bits: an undefined bit has u set and v clear, and a poison bit has both set. Poison applies to whole
// scalars (LangRef, "Poison Values"): if one bit of a scalar is poison, all are. So checking one bit is enough.

// poisonOf returns a word in which the bits of the mask m are poison.
func poisonOf(m uint64) word { return word{m, m} }

// isPoison reports whether a word is part of a poison scalar.
func isPoison(w word) bool { return w.v&w.u != 0 }

// anyPoison reports whether any word of the list is poison.
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

// poisonWords sets a scalar to poison.
func poisonWords(w []word, width int) {
	for i := range w {
		w[i] = poisonOf(maskAt(width, i))
	}
}

// undefWords sets all bits of a scalar to undefined.
func undefWords(w []word, width int) {
	for i := range w {
		w[i] = word{u: maskAt(width, i)}
	}
}

// unknownWords sets dst to the result of an operation with unknown operand bits that cannot be computed bit by bit. The result is poison if an
// operand is poison, else undefined.
func unknownWords(dst []word, width int, operands ...[]word) {
	if anyPoison(operands...) {
		poisonWords(dst, width)
		return
	}
	undefWords(dst, width)
}

// loaded returns a word of a scalar loaded from memory: one poison bit makes the whole word poison (LangRef, "load").
func loaded(w word, m uint64) word {
	if isPoison(w) {
		return poisonOf(m)
	}
	return w
}

// poison returns a value of this shape that is all poison.
func (s *shape) poison() []word {
	w := s.undefined()
	poisonAll(w)
	return w
}

// fillPoison sets the words of a value of this shape to poison.
func (s *shape) fillPoison(w []word) {
	s.fillUndefined(w)
	poisonAll(w)
}

func poisonAll(w []word) {
	for i := range w {
		w[i].v = w[i].u
	}
}

// notKnown returns the error for an operand with unknown bits on which the run would depend. The error says whether the bits are poison or undefined.
func notKnown(w []word, format string, args ...any) error {
	if anyPoison(w) {
		return troublef(KindUndef, format+" is poison", args...)
	}
	return undefined(format, args...)
}
