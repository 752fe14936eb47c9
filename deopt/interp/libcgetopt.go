package interp

import (
	"bytes"
	"fmt"

	"reframe/deopt/machine"
)

// getoptFuncs holds the functions that parse a command line (POSIX.1-2017, getopt; the long options and the order of arguments are GNU's, getopt(3)).
// They move words that are not options after the options.
var getoptFuncs = map[string]Builtin{
	"getopt":           scalar(func(c *ccall) uint64 { return c.getopt(getopt{}) }),
	"__posix_getopt":   scalar(func(c *ccall) uint64 { return c.getopt(getopt{inOrder: true}) }), // what <unistd.h> has without GNU's extensions
	"getopt_long":      scalar(func(c *ccall) uint64 { return c.getopt(getopt{long: c.addr(3), index: c.addr(4)}) }),
	"getopt_long_only": scalar(func(c *ccall) uint64 { return c.getopt(getopt{long: c.addr(3), index: c.addr(4), only: true}) }),
}

// optionState holds the state of getopt between calls that the program cannot see.
type optionState struct {
	begun       bool
	next        machine.Addr // in the word that is being taken apart, 0 before a new one
	first, last int          // the words that were passed over: [first, last)
	order       optionOrder
}

type optionOrder int

const (
	orderPermute optionOrder = iota // options first
	orderRequire                    // the first other word ends the options: the text starts with +
	orderReturn                     // other words are arguments of an option 1: the text starts with -
)

// getopt is one call.
type getopt struct {
	*ccall
	state       *optionState
	argc        int
	argv        machine.Addr
	short       []byte // the letters, without what starts the text
	long, index machine.Addr
	only        bool // long options may have one dash
	inOrder     bool
	print       bool
}

// getopt returns a letter or the value of a long option, '?' for an error, and -1 at the end.
func (c *ccall) getopt(g getopt) uint64 {
	if c.in.opt.Memory != nil {
		c.fail(unsupported("", "@%s, whose variables are the target's C library's,", c.Name))
	}
	g.ccall, g.state, g.argc, g.argv = c, &c.in.clib.options, int(c.int(0)), c.addr(1)
	g.short = bytes.Clone(c.text(2))
	if c.err != nil || g.argc < 1 {
		return eof
	}
	return g.run()
}

// variable returns the value of one of the ints that a program shares with getopt.
func (g *getopt) variable(name string) int64 {
	return int64(int32(g.get(g.shared(name), 4)))
}

func (g *getopt) set(name string, v int64) { g.put(g.shared(name), 4, uint64(v)) }

func (g *getopt) setArg(a machine.Addr) { g.put(g.shared("optarg"), g.longSize(), uint64(a)) }

// word is the address of an argument's text.
func (g *getopt) word(i int) machine.Addr {
	size := g.longSize()
	return machine.Addr(g.get(g.argv+machine.Addr(i*size), size))
}

func (g *getopt) char(a machine.Addr) byte { return byte(g.get(a, 1)) }

// isOption reports whether a word starts with a dash and has more.
func (g *getopt) isOption(i int) bool {
	a := g.word(i)
	return g.char(a) == '-' && g.char(a+1) != 0
}

func (g *getopt) begin() {
	s := g.state
	ind := g.variable("optind")
	starts := byte(0)
	if len(g.short) > 0 {
		starts = g.short[0]
	}
	if !s.begun || ind == 0 {
		if ind == 0 {
			ind = 1
			g.set("optind", 1)
		}
		*s = optionState{begun: true, first: int(ind), last: int(ind)}
		switch {
		case starts == '-':
			s.order = orderReturn
		case starts == '+' || g.inOrder:
			s.order = orderRequire
		}
	}
	if starts == '-' || starts == '+' {
		g.short = g.short[1:]
	}
	g.print = g.variable("opterr") != 0 && !g.quiet()
}

// quiet reports whether a missing argument is answered with a colon, and nothing printed.
func (g *getopt) quiet() bool { return len(g.short) > 0 && g.short[0] == ':' }

func (g *getopt) missing() uint64 {
	if g.quiet() {
		return ':'
	}
	return '?'
}

// complain prints an error message after the program's name.
func (g *getopt) complain(format string, args ...any) {
	if g.print && g.err == nil {
		g.ccall.print(2, fmt.Appendf(append(g.textAt(g.word(0), ^uint64(0)), ": "...), format+"\n", args...))
	}
}

func (g *getopt) run() uint64 {
	g.setArg(0)
	g.begin()
	s := g.state
	if s.next == 0 || g.char(s.next) == 0 {
		code, found := g.nextWord()
		if !found || g.err != nil {
			return code
		}
		at := g.word(int(g.variable("optind")))
		if g.long != 0 {
			if g.char(at+1) == '-' {
				s.next = at + 2
				return g.longOption("--", false)
			}
			if g.only && (g.char(at+2) != 0 || !bytes.Contains(g.short, []byte{g.char(at + 1)})) {
				s.next = at + 1
				if code := g.longOption("-", true); code != eof {
					return code
				}
			}
		}
		s.next = at + 1
	}
	return g.shortOption()
}

// nextWord moves on to a word with options. If there is none, found is false and code is the result of getopt.
func (g *getopt) nextWord() (code uint64, found bool) {
	s, ind := g.state, int(g.variable("optind"))
	s.first, s.last = min(s.first, ind), min(s.last, ind)
	if s.order == orderPermute {
		g.exchange(ind)
		if s.first == s.last {
			s.first = ind
		}
		for ind < g.argc && g.err == nil && !g.isOption(ind) {
			ind++
		}
		s.last = ind
	}
	if ind < g.argc && string(g.textAt(g.word(ind), ^uint64(0))) == "--" {
		ind++
		g.exchange(ind)
		if s.first == s.last {
			s.first = ind
		}
		s.last, ind = g.argc, g.argc
	}
	switch {
	case ind >= g.argc:
		if s.first != s.last {
			ind = s.first
		}
		g.set("optind", int64(ind))
		return eof, false
	case g.isOption(ind):
		g.set("optind", int64(ind))
		return 0, true
	case s.order == orderRequire:
		g.set("optind", int64(ind))
		return eof, false
	}
	g.setArg(g.word(ind))
	g.set("optind", int64(ind+1))
	return 1, false
}

// exchange moves the words that were passed over after the options up to end.
func (g *getopt) exchange(end int) {
	s := g.state
	if s.first == s.last || s.last == end {
		return
	}
	if s.first < 0 || end > g.argc || s.first > s.last || s.last > end {
		g.fail(troublef(KindFault, "@%s finds optind changed to what it never was", g.Name))
		return
	}
	size := g.longSize()
	words := g.bytes(g.argv+machine.Addr(s.first*size), uint64((end-s.first)*size))
	if g.err != nil {
		return
	}
	passed := (s.last - s.first) * size
	g.write(g.argv+machine.Addr(s.first*size), append(bytes.Clone(words[passed:]), words[:passed]...))
	s.first, s.last = s.first+end-s.last, end
}

func (g *getopt) shortOption() uint64 {
	s, ind := g.state, g.variable("optind")
	letter := g.char(s.next)
	s.next++
	rest := s.next
	more := g.char(rest) != 0
	if !more {
		ind++
	}
	defer func() { g.set("optind", ind) }()
	at := bytes.IndexByte(g.short, letter)
	if at < 0 || letter == ':' || letter == ';' {
		g.complain("invalid option -- '%s'", []byte{letter})
		g.set("optopt", int64(letter))
		return '?'
	}
	takes := g.short[at+1:]
	needs := len(takes) > 0 && takes[0] == ':'
	wide := letter == 'W' && len(takes) > 0 && takes[0] == ';' && g.long != 0
	switch {
	case !needs && !wide:
		return uint64(letter)
	case more:
		if wide {
			break
		}
		g.setArg(rest)
		ind++
	case needs && len(takes) > 1 && takes[1] == ':': // it need not have one
	case ind >= int64(g.argc):
		g.complain("option requires an argument -- '%s'", []byte{letter})
		g.set("optopt", int64(letter))
		s.next = 0
		return g.missing()
	default:
		rest = g.word(int(ind))
		if !wide {
			g.setArg(rest)
			ind++
		}
	}
	s.next = 0
	if wide { // -W name is --name
		s.next = rest
		g.set("optind", ind)
		code := g.longOption("-W ", false)
		ind = g.variable("optind")
		return code
	}
	return uint64(letter)
}

// An option of the table for long ones, which ends with a null name.
type longOption struct {
	name   string
	hasArg int64
	flag   machine.Addr
	val    int64
}

// maxOptions bounds a table that does not end.
const maxOptions = 1 << 16

func (g *getopt) options() (table []longOption) {
	size := machine.Addr(g.longSize())
	for at := g.long; g.err == nil; at += 4 * size {
		name := machine.Addr(g.get(at, int(size)))
		if name == 0 || g.err != nil {
			break
		}
		if len(table) == maxOptions {
			g.fail(unsupported("", "a table of more than %d long options", maxOptions))
			break
		}
		table = append(table, longOption{string(g.textAt(name, ^uint64(0))), int64(int32(g.get(at+size, 4))),
			machine.Addr(g.get(at+2*size, int(size))), int64(int32(g.get(at+3*size, 4)))})
	}
	return table
}

// longOption takes the option whose name, perhaps the start of it only, is next.
func (g *getopt) longOption(prefix string, only bool) uint64 {
	s := g.state
	text := string(g.textAt(s.next, ^uint64(0)))
	name, table := text, g.options()
	if k := bytes.IndexByte([]byte(text), '='); k >= 0 {
		name = text[:k]
	}
	if g.err != nil {
		return eof
	}
	found, several := findOption(table, name, g.only)
	ind := g.variable("optind")
	switch {
	case len(several) > 0:
		list := ""
		for _, k := range several {
			list += " '" + prefix + table[k].name + "'"
		}
		g.complain("option '%s%s' is ambiguous; possibilities:%s", prefix, text, list)
	case found < 0:
		if only && g.char(g.word(int(ind))+1) != '-' && bytes.IndexByte(g.short, g.char(s.next)) >= 0 {
			return eof // a short one
		}
		g.complain("unrecognized option '%s%s'", prefix, text)
	}
	next := s.next
	s.next = 0
	ind++
	defer func() { g.set("optind", ind) }()
	if len(several) > 0 || found < 0 {
		g.set("optopt", 0)
		return '?'
	}
	o := table[found]
	switch {
	case name != text && o.hasArg != 0:
		g.setArg(next + machine.Addr(len(name)+1))
	case name != text:
		g.complain("option '%s%s' doesn't allow an argument", prefix, o.name)
		g.set("optopt", o.val)
		return '?'
	case o.hasArg == 1 && ind >= int64(g.argc):
		g.complain("option '%s%s' requires an argument", prefix, o.name)
		g.set("optopt", o.val)
		return g.missing()
	case o.hasArg == 1:
		g.setArg(g.word(int(ind)))
		ind++
	}
	if g.index != 0 {
		g.put(g.index, 4, uint64(found))
	}
	if o.flag != 0 {
		g.put(o.flag, 4, uint64(o.val))
		return 0
	}
	return uint64(o.val)
}

// findOption returns the index of the option with this name, or else of the one whose name starts with it, or -1 for none. several holds the matches
// where they are not the same option.
func findOption(table []longOption, name string, only bool) (found int, several []int) {
	found = -1
	for k, o := range table {
		if o.name == name {
			return k, nil
		}
	}
	for k, o := range table {
		if len(o.name) < len(name) || o.name[:len(name)] != name {
			continue
		}
		if found < 0 {
			found = k
			continue
		}
		first := table[found]
		if first.name = o.name; only || first != o {
			if several == nil {
				several = []int{found}
			}
			several = append(several, k)
		}
	}
	return found, several
}
