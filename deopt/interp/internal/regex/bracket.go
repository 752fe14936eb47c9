package regex

import "bytes"

// element is one item between brackets: a byte, a range's end, or an item with a name.
type element struct {
	sort byte // 0 a byte, ':' a class, '=' what is equivalent, '.' a collating element
	c    byte
	name []byte
}

// maxName is the length up to which glibc accepts a name.
const maxName = 31

// bracketToken is one symbol between brackets: its sort is 'c' for a plain byte, '-', ']', '^', one of ':', '=', '.' for the
// start of a name, and 0 at the end of the expression.
func (l *lexer) bracketToken() (sort, c byte, n int) {
	if l.at >= len(l.text) {
		return 0, 0, 0
	}
	c = l.text[l.at]
	switch c {
	case '-', ']', '^':
		return c, c, 1
	case '[':
		if l.at+1 < len(l.text) {
			if d := l.text[l.at+1]; d == ':' || d == '=' || d == '.' {
				return d, d, 2
			}
		}
	}
	return 'c', c, 1
}

// bracket reads a bracket expression after its [ (XBD 9.3.5).
func (l *lexer) bracket() (*set, error) {
	s, negative := new(set), false
	sort, c, n := l.bracketToken()
	if sort == 0 {
		return nil, BadPattern
	}
	if sort == '^' {
		negative = true
		if l.flags&Newline != 0 {
			s.add('\n')
		}
		l.at += n
		if sort, c, n = l.bracketToken(); sort == 0 {
			return nil, BadPattern
		}
	}
	if sort == ']' {
		sort = 'c' // as the first one it is a byte
	}
	for first := true; ; first = false {
		from, err := l.element(sort, c, n, first)
		if err != nil {
			return nil, err
		}
		sort, c, n = l.bracketToken()
		to, ranged := element{}, false
		if from.sort != ':' && from.sort != '=' {
			if sort == 0 {
				return nil, BadBracket
			}
			if sort == '-' {
				l.at += n
				sort2, c2, n2 := l.bracketToken()
				switch sort2 {
				case 0:
					return nil, BadBracket
				case ']': // the last - is a byte
					l.at -= n
					sort = 'c'
				default:
					if to, err = l.element(sort2, c2, n2, true); err != nil {
						return nil, err
					}
					ranged = true
					sort, c, n = l.bracketToken()
				}
			}
		}
		if ranged {
			err = s.addRange(from, to)
		} else {
			err = s.addElement(from, l.flags)
		}
		switch {
		case err != nil:
			return nil, err
		case sort == 0:
			return nil, BadBracket
		}
		if sort == ']' {
			l.at += n
			break
		}
	}
	if negative {
		s.invert()
	}
	return s, nil
}

// element takes the symbol at hand, with its name if it has one.
func (l *lexer) element(sort, c byte, n int, hyphen bool) (element, error) {
	l.at += n
	switch sort {
	case ':', '=', '.':
		return l.named(sort)
	case '-':
		if next, _, _ := l.bracketToken(); !hyphen && next != ']' {
			return element{}, BadRange
		}
	}
	return element{c: c}, nil
}

func (l *lexer) named(sort byte) (element, error) {
	text := l.text
	if sort == ':' {
		text = l.raw
	}
	if l.at >= len(text) {
		return element{}, BadBracket
	}
	rest := text[l.at:]
	k := bytes.Index(rest, []byte{sort, ']'})
	if k < 0 || k > maxName {
		return element{}, BadBracket
	}
	l.at += k + 2
	name := rest[:k]
	if z := bytes.IndexByte(name, 0); z >= 0 {
		name = name[:z]
	}
	return element{sort: sort, name: name}, nil
}

func (s *set) addElement(e element, flags Flags) error {
	switch e.sort {
	case ':':
		name := string(e.name)
		if flags&IgnoreCase != 0 && (name == "upper" || name == "lower") {
			name = "alpha"
		}
		f := classes[name]
		if f == nil {
			return BadClass
		}
		s.addIf(f)
	case '=', '.':
		if len(e.name) != 1 { // the locale has no others
			return BadCollation
		}
		s.add(e.name[0])
	default:
		s.add(e.c)
	}
	return nil
}

// addRange adds the bytes between two bytes by their numbers, the order of the locale.
func (s *set) addRange(from, to element) error {
	var ends [2]byte
	for k, e := range []element{from, to} {
		switch {
		case e.sort == ':' || e.sort == '=':
			return BadRange
		case e.sort == '.' && len(e.name) != 1:
			return BadCollation
		case e.sort == '.':
			ends[k] = e.name[0]
		default:
			ends[k] = e.c
		}
	}
	if ends[0] > ends[1] {
		return BadRange
	}
	s.addIf(func(c byte) bool { return between(c, ends[0], ends[1]) })
	return nil
}
