package names

import (
	"cmp"
	"slices"
	"strings"
)

// Nearest collects the names that are nearest to a name that does not exist.
type Nearest struct {
	name string
	best []candidate
	seen map[string]bool
	left int // how many more names are compared
}

type candidate struct {
	name  string
	steps int
}

// These are limits on the names that are shown and compared.
const (
	shownNear = 5
	maxLooked = 1 << 18
	maxLong   = 128 // bytes; longer names are not compared
)

// NewNearest returns a Nearest for a name as the user typed it.
func NewNearest(name string) *Nearest {
	name = strings.Trim(name, "/")
	return &Nearest{name: name, seen: map[string]bool{}, left: maxLooked}
}

// Add compares the short name of a symbol.
func (n *Nearest) Add(symbol string) {
	if n.left == 0 || symbol == "" {
		return
	}
	n.left--
	if mangled(symbol) {
		symbol = Short(symbol)
	}
	steps, ok := n.steps(symbol)
	if !ok || n.seen[symbol] {
		return
	}
	n.seen[symbol] = true
	at, _ := slices.BinarySearchFunc(n.best, candidate{symbol, steps}, func(a, b candidate) int { return cmp.Or(a.steps-b.steps, strings.Compare(a.name, b.name)) })
	n.best = slices.Insert(n.best, at, candidate{symbol, steps})
	if len(n.best) > shownNear {
		delete(n.seen, n.best[shownNear].name)
		n.best = n.best[:shownNear]
	}
}

// steps returns the distance between the name and a symbol; ok is false if they are too different. Names that differ only in case have the smallest
// distance, then names with a few wrong letters, then names that contain the typed one.
func (n *Nearest) steps(symbol string) (steps int, ok bool) {
	a, b := strings.ToLower(n.name), strings.ToLower(symbol)
	if a == b {
		return 0, true
	}
	last := b[strings.LastIndexByte(b, ':')+1:]
	if a == last { // a is f, and the symbol is ns::f
		return 1, true
	}
	limit := 0
	if len(a) > 2 {
		limit = 1 + len(a)/4
	}
	if d, ok := within(a, b, limit); ok {
		return 1 + d, true
	}
	if d, ok := within(a, last, limit); ok && last != b {
		return 2 + d, true
	}
	if len(a) >= 3 && strings.Contains(b, a) {
		return 2 + limit + min(len(b)-len(a), maxLong), true
	}
	return 0, false
}

// within returns the distance of a and b, and whether it is at most limit.
func within(a, b string, limit int) (int, bool) {
	if len(a) > maxLong || len(b) > maxLong || len(a)-len(b) > limit || len(b)-len(a) > limit {
		return 0, false
	}
	d := Distance(a, b)
	return d, d <= limit
}

// String returns "; nearest: a, b", or "" if no name is near.
func (n *Nearest) String() string {
	if len(n.best) == 0 {
		return ""
	}
	var words []string
	for _, b := range n.best {
		words = append(words, b.name)
	}
	return "; nearest: " + strings.Join(words, ", ")
}
