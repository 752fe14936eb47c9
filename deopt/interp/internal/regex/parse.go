package regex

// Bounds on the size of an expression.
const (
	MaxNodes = 1 << 16 // of the automaton
	MaxNest  = 1000    // parentheses in each other
)

// maxBound is RE_DUP_MAX, the largest number in braces.
const maxBound = 0x7fff

// op is the kind of a tree, and later of a node of the automaton.
type op uint8

const (
	opByte op = iota
	opSet
	opAnchor
	opAlt  // left or right; of one that is nil, what follows
	opStar // of left
	opConcat
	opGroup // of left, which may be nil
	opOpen
	opClose
	opEnd
)

// tree is a parsed expression.
type tree struct {
	op          op
	c           byte
	set         *set
	at          constraint
	group       int  // from 0
	optional    bool // a group that a repetition may leave out
	copied      bool // for a repetition
	left, right *tree

	node  int // of the automaton
	first *tree
	next  *tree
}

// parser makes a tree of an expression.
type parser struct {
	*lexer
	t       token // the one at hand
	groups  int
	nodes   int
	backRef bool
	// closed are the groups, of the first nine, that a back reference may name here.
	closed uint16
}

func (p *parser) node(t tree) (*tree, error) {
	if p.nodes++; p.nodes > 4*MaxNodes {
		return nil, unsupported("a regular expression that needs more than %d nodes", MaxNodes)
	}
	return &t, nil
}

func (p *parser) advance(caret bool) { p.t = p.next(caret) }

// parse reads a whole expression.
func (p *parser) parse() (*tree, error) {
	p.advance(true)
	body, err := p.alternatives(0)
	if err != nil {
		return nil, err
	}
	last, err := p.node(tree{op: opEnd})
	if err != nil || body == nil {
		return last, err
	}
	return p.node(tree{op: opConcat, left: body, right: last})
}

// ends reports whether the token at hand ends a part that is nest groups deep. Outside of all a ) is a byte.
func (p *parser) ends(nest int) bool {
	return p.t.kind == tokAlt || p.t.kind == tokEnd || nest > 0 && p.t.kind == tokClose
}

func (p *parser) alternatives(nest int) (*tree, error) {
	before := p.closed
	t, err := p.branch(nest)
	for err == nil && p.t.kind == tokAlt {
		p.advance(true)
		var right *tree
		if !p.ends(nest) {
			all := p.closed
			p.closed = before
			if right, err = p.branch(nest); err != nil {
				return nil, err
			}
			p.closed |= all
		}
		t, err = p.node(tree{op: opAlt, left: t, right: right})
	}
	return t, err
}

func (p *parser) branch(nest int) (*tree, error) {
	t, err := p.repeated(nest)
	for err == nil && !p.ends(nest) {
		var right *tree
		if right, err = p.repeated(nest); err != nil {
			return nil, err
		}
		switch {
		case t == nil:
			t = right
		case right != nil:
			t, err = p.node(tree{op: opConcat, left: t, right: right})
		}
	}
	return t, err
}

// repeated reads an atom and its repetitions; it returns nil where there is none.
func (p *parser) repeated(nest int) (*tree, error) {
	if p.t.kind == tokAnchor { // nothing repeats it
		t, err := p.anchor()
		p.advance(false)
		return t, err
	}
	t, err := p.atom(nest)
	if err != nil || t == nil && p.ends(0) {
		return nil, err
	}
	p.advance(false)
	for {
		switch p.t.kind {
		case tokStar, tokPlus, tokOption, tokOpenBound:
		default:
			return t, nil
		}
		if t, err = p.repetition(t); err != nil {
			return nil, err
		}
		if !p.extended() && (p.t.kind == tokStar || p.t.kind == tokOpenBound) {
			return nil, BadRepeat
		}
	}
}

func (p *parser) anchor() (*tree, error) {
	switch p.t.at {
	case eitherWord:
		return p.edge(escapes['<'], escapes['>'])
	case neitherWord:
		return p.edge(prevWord|nextWord, prevNotWord|nextNotWord)
	}
	return p.node(tree{op: opAnchor, at: p.t.at})
}

func (p *parser) edge(a, b constraint) (*tree, error) {
	left, err := p.node(tree{op: opAnchor, at: a})
	if err != nil {
		return nil, err
	}
	right, err := p.node(tree{op: opAnchor, at: b})
	if err != nil {
		return nil, err
	}
	return p.node(tree{op: opAlt, left: left, right: right})
}

// atom reads an item that can be repeated. Afterwards the current token is its last one.
func (p *parser) atom(nest int) (*tree, error) {
	switch p.t.kind {
	case tokSet:
		return p.node(tree{op: opSet, set: p.t.set})
	case tokOpen:
		return p.group(nest + 1)
	case tokBracket:
		s, err := p.bracket()
		if err != nil {
			return nil, err
		}
		return p.node(tree{op: opSet, set: s})
	case tokBackRef:
		if p.closed>>(p.t.c-'1')&1 == 0 {
			return nil, BadBackRef
		}
		p.backRef = true // and the rest is read for errors
	case tokOpenBound:
		return nil, BadRepeat
	case tokStar, tokPlus, tokOption:
		if p.extended() {
			return nil, BadRepeat
		}
	case tokClose:
		if !p.extended() {
			return nil, BadParen
		}
	case tokAlt, tokEnd:
		return nil, nil
	case tokBackslash:
		return nil, BadEscape
	}
	return p.node(tree{op: opByte, c: p.t.c})
}

func (p *parser) group(nest int) (*tree, error) {
	if nest > MaxNest {
		return nil, unsupported("a regular expression with more than %d groups in each other", MaxNest)
	}
	k := p.groups
	p.groups++
	p.advance(true)
	var body *tree
	if p.t.kind != tokClose {
		var err error
		if body, err = p.alternatives(nest); err != nil {
			return nil, err
		}
		if p.t.kind != tokClose {
			return nil, BadParen
		}
	}
	if k < 9 {
		p.closed |= 1 << k
	}
	return p.node(tree{op: opGroup, group: k, left: body})
}

// repetition reads * + ? or braces after t, which may be nil.
func (p *parser) repetition(t *tree) (*tree, error) {
	low, high := 0, -1
	switch p.t.kind {
	case tokPlus:
		low = 1
	case tokOption:
		high = 1
	case tokOpenBound:
		var err error
		if low, high, err = p.bounds(); err != nil {
			return nil, err
		}
	}
	p.advance(false)
	if t == nil || high == 0 {
		return nil, nil
	}
	return p.repeat(t, low, high)
}

// repeat is t low to high times, without end where high is -1: the copies that must be there, then those that may, each
// inside of the one before as in (x(x(x)?)?)?.
func (p *parser) repeat(t *tree, low, high int) (*tree, error) {
	var must *tree
	var err error
	if low > 0 {
		must = t
		for range low - 1 {
			if must, err = p.concatCopy(must, t); err != nil {
				return nil, err
			}
		}
		if low == high {
			return must, nil
		}
		if t, err = p.copy(t); err != nil {
			return nil, err
		}
	}
	if t.op == opGroup {
		t.mark(t.group)
		if low > 1 {
			must.right.mark(t.group) // as glibc does: the copy has the parent of the last one before it
		}
	}
	kind := opAlt
	if high < 0 {
		kind = opStar
	}
	may, err := p.node(tree{op: kind, left: t})
	for k := low + 2; err == nil && k <= high; k++ {
		if may, err = p.concatCopy(may, t); err == nil {
			may, err = p.node(tree{op: opAlt, left: may})
		}
	}
	if err != nil || must == nil {
		return may, err
	}
	return p.node(tree{op: opConcat, left: must, right: may})
}

func (p *parser) concatCopy(left, t *tree) (*tree, error) {
	right, err := p.copy(t)
	if err != nil {
		return nil, err
	}
	return p.node(tree{op: opConcat, left: left, right: right})
}

func (p *parser) copy(t *tree) (*tree, error) {
	if t == nil {
		return nil, nil
	}
	c, err := p.node(*t)
	if err == nil {
		c.copied, c.optional = true, false
		c.left, err = p.copy(t.left)
	}
	if err == nil {
		c.right, err = p.copy(t.right)
	}
	return c, err
}

// mark notes that a group may be left out.
func (t *tree) mark(group int) {
	if t == nil {
		return
	}
	if t.op == opGroup && t.group == group {
		t.optional = true
	}
	t.left.mark(group)
	t.right.mark(group)
}

// bounds reads the text between braces.
func (p *parser) bounds() (low, high int, err error) {
	const none, wrong = -1, -2
	low = p.number()
	switch {
	case low == none && p.t.kind == tokByte && p.t.c == ',':
		low = 0
	case low == none:
		return 0, 0, BadBound
	}
	if low != wrong {
		switch {
		case p.t.kind == tokCloseBound:
			high = low
		case p.t.kind == tokByte && p.t.c == ',':
			high = p.number()
		default:
			high = wrong
		}
	}
	switch {
	case low == wrong || high == wrong:
		if p.t.kind == tokEnd {
			return 0, 0, BadBrace
		}
		return 0, 0, BadBound
	case high != none && low > high || p.t.kind != tokCloseBound:
		return 0, 0, BadBound
	case max(low, high) > maxBound:
		return 0, 0, TooBig
	}
	return low, high, nil
}

// number reads up to a comma or the closing brace: -1 for no digits, -2 for anything else.
func (p *parser) number() int {
	n := -1
	for {
		p.advance(false)
		switch {
		case p.t.kind == tokEnd:
			return -2
		case p.t.kind == tokCloseBound || p.t.c == ',':
			return n
		case p.t.kind != tokByte || !isDigit(p.t.c) || n == -2:
			n = -2
		default:
			n = min(maxBound+1, max(n, 0)*10+int(p.t.c-'0'))
		}
	}
}
