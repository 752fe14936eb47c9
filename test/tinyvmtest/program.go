package tinyvmtest

import (
	"fmt"
	"math/rand/v2"
	"strings"
)

// Program returns a random program for examples/tinyvm, which depends only on the seed. It ends normally or when its fuel is used up, and seldom by
// an error. It calls its methods often with values that the compiler will have seen before, and then with others: numbers that overflow an int,
// doubles, objects of other classes, and values for branches that were never taken. Objects refer to each other in cycles, and most of them do not
// escape.
func Program(seed uint64) string {
	g := &generator{random: rand.New(rand.NewPCG(seed, 20))}
	g.line("; seed %d", seed)
	for c := range 2 + g.random.IntN(2) {
		fields := []string{"n", "m", "r"}
		g.random.Shuffle(3, func(i, j int) { fields[i], fields[j] = fields[j], fields[i] })
		if g.one(2) {
			fields = append([]string{fmt.Sprintf("extra%d", c)}, fields...)
		}
		g.classes = append(g.classes, fmt.Sprintf("Class%d", c))
		g.line("class Class%d %s", c, strings.Join(fields, " "))
	}
	for level := range 4 + g.random.IntN(3) {
		g.method(level)
	}
	for level := range 4 {
		g.link(level)
	}
	g.main()
	return g.text.String()
}

// method is a method of the program. Its parameters are numbers, followed by objects.
type method struct {
	name             string
	numbers, objects int
	recursive        bool
}

type generator struct {
	random  *rand.Rand
	text    strings.Builder
	classes []string
	methods []method // methods that the current method may call, which have lower levels
	labels  int
	// State of the method that is being generated: its locals by the kind of their values.
	numbers, objects, counters []int
	locals                     int
	loops, calls, size         int
}

func (g *generator) line(format string, args ...any) { fmt.Fprintf(&g.text, format+"\n", args...) }
func (g *generator) op(format string, args ...any)   { g.line("  "+format, args...); g.size++ }
func (g *generator) one(in int) bool                 { return g.random.IntN(in) == 0 }
func (g *generator) class() string                   { return g.classes[g.random.IntN(len(g.classes))] }

func (g *generator) label() string {
	g.labels++
	return fmt.Sprint("l", g.labels)
}

func pick(g *generator, of []int) int { return of[g.random.IntN(len(of))] }

// method generates a method that calls methods of lower levels, and sometimes itself.
func (g *generator) method(level int) {
	m := method{name: fmt.Sprintf("Level%d.run", level), numbers: 1 + g.random.IntN(3), objects: g.random.IntN(2), recursive: g.one(6)}
	args := m.numbers + m.objects
	g.locals, g.size, g.loops, g.calls = args, 0, 0, 0
	g.numbers, g.objects, g.counters = nil, nil, nil
	for l := range args {
		if l < m.numbers {
			g.numbers = append(g.numbers, l)
		} else {
			g.objects = append(g.objects, l)
		}
	}
	body := g.text
	g.text = strings.Builder{}
	if m.recursive { // the first number counts the recursive calls that remain
		end := g.label()
		g.op("get 0\n  int 1\n  lt\n  if %s", end)
		g.op("get 0\n  int 5\n  le\n  dup\n  if %s.few\n  pop\n  int 3\n  set 0\n  int 1\n%s.few:\n  pop", end, end)
		g.op("get 0\n  int 1\n  sub")
		for l := 1; l < args; l++ {
			g.op("get %d", l)
		}
		g.op("call %s\n  set %d", m.name, pick(g, g.numbers))
		g.line("%s:", end)
	}
	for range 2 {
		g.op("%s\n  set %d", g.constant(), g.number())
	}
	for range 1 + g.random.IntN(2) {
		g.op("new %s", g.class())
		g.op("set %d", g.object())
	}
	for range 2 + g.random.IntN(3) {
		g.statement(0)
	}
	g.expression(2)
	g.op("return")
	code := g.text
	g.text = strings.Builder{}
	g.text.WriteString(body.String())
	g.line("method %s %d %d", m.name, args, g.locals)
	g.text.WriteString(code.String())
	g.methods = append(g.methods, m)
}

// link generates a method of a chain. Each calls the one below with its arguments and an object of its own. The methods are short, so that all are
// inlined into the highest, which main calls. Unusual arguments reach the lowest method only when all are compiled.
func (g *generator) link(level int) {
	m := method{name: fmt.Sprintf("Chain%d.run", level), numbers: 2, objects: 1}
	g.size, g.loops, g.calls, g.locals = 25, 2, 2, 4
	g.numbers, g.objects = []int{0, 1}, []int{2, 3}
	g.line("method %s 3 4", m.name)
	g.op("new %s\n  set 3", g.class())
	monitor := g.one(2)
	if monitor {
		g.op("get %d\n  enter", 2+g.random.IntN(2))
	}
	g.op("get 3\n  get %d\n  putfield r", 2+g.random.IntN(2))
	if g.one(2) {
		g.op("get 2\n  get 3\n  putfield r")
	}
	if g.one(2) {
		g.statement(3)
	}
	g.expression(1)
	if level > 0 {
		g.op("get %d\n  get %d\n  get 3\n  call Chain%d.run", g.random.IntN(2), g.random.IntN(2), level-1)
		g.op("add")
	} else {
		g.op("get %d\n  get %d\n  %s", g.random.IntN(2), g.random.IntN(2), []string{"mul", "add", "sub"}[g.random.IntN(3)])
		g.op("add")
	}
	if monitor {
		g.op("exit")
	}
	g.op("return")
	g.methods = append(g.methods, m)
}

// number and object add a local.
func (g *generator) number() int {
	g.numbers = append(g.numbers, g.local())
	return g.numbers[len(g.numbers)-1]
}

func (g *generator) object() int {
	g.objects = append(g.objects, g.local())
	return g.objects[len(g.objects)-1]
}

func (g *generator) local() int {
	g.locals++
	return g.locals - 1
}

func (g *generator) constant() string {
	switch g.random.IntN(12) {
	case 0:
		return fmt.Sprintf("double %v", float64(g.random.IntN(1000))/8)
	case 1:
		return fmt.Sprintf("int %d", 1<<30-g.random.IntN(100))
	default:
		return fmt.Sprintf("int %d", g.random.IntN(40)-10)
	}
}

// expression pushes a number.
func (g *generator) expression(depth int) {
	if depth == 0 || g.size > 35 {
		if g.one(3) {
			g.op("%s", g.constant())
		} else {
			g.op("get %d", pick(g, g.numbers))
		}
		return
	}
	switch n := g.random.IntN(12); {
	case n < 5:
		g.expression(depth - 1)
		g.expression(depth - 1)
		g.op("%s", []string{"add", "sub", "mul", "add", "sub"}[n])
	case n == 5:
		g.expression(depth - 1)
		g.expression(depth - 1)
		g.op("%s", []string{"lt", "le", "eq", "div"}[g.random.IntN(4)])
	case n < 9:
		g.op("get %d", pick(g, g.objects))
		g.op("getfield %s", []string{"n", "m"}[g.random.IntN(2)])
		g.known()
	case n == 9:
		g.expression(0)
		g.expression(0)
		g.op("add")
	default:
		g.call(depth - 1)
	}
}

// known replaces a null on top of the stack by a number.
func (g *generator) known() {
	l := g.label()
	g.op("dup\n  null\n  eq\n  if %s.null\n  jump %s\n%s.null:\n  pop\n  %s\n%s:", l, l, l, g.constant(), l)
}

func (g *generator) call(depth int) {
	if len(g.methods) == 0 || g.calls >= 2 { // more would make the programs too long
		g.expression(0)
		return
	}
	g.calls++
	m := g.methods[len(g.methods)-1-g.random.IntN(min(2, len(g.methods)))]
	for range m.numbers {
		g.expression(min(depth, 1))
	}
	for range m.objects {
		g.anObject()
	}
	g.op("call %s", m.name)
}

func (g *generator) anObject() {
	if g.one(4) {
		g.op("new %s", g.class())
	} else {
		g.op("get %d", pick(g, g.objects))
	}
}

// statement generates a statement, which does not change the stack's height.
func (g *generator) statement(nested int) {
	if g.size > 45 {
		return
	}
	switch n := g.random.IntN(16); {
	case n < 4:
		g.expression(2)
		g.op("set %d", pick(g, g.numbers))
	case n < 6:
		g.op("get %d", pick(g, g.objects))
		g.expression(1)
		g.op("putfield %s", []string{"n", "m"}[g.random.IntN(2)])
	case n == 6: // a cycle of one or two objects
		a, b := pick(g, g.objects), pick(g, g.objects)
		if g.one(2) {
			g.op("new %s\n  set %d", g.class(), a)
		}
		if g.one(2) {
			g.op("new %s\n  set %d", g.class(), b)
		}
		g.op("get %d\n  get %d\n  putfield r", a, b)
		g.op("get %d\n  get %d\n  putfield r", b, a)
	case n == 7: // follows a reference
		l := g.label()
		o := pick(g, g.objects)
		g.op("get %d\n  getfield r\n  if %s\n  jump %s.end\n%s:", o, l, l, l)
		g.op("get %d\n  getfield r", o)
		if g.one(2) {
			g.op("set %d", pick(g, g.objects))
		} else {
			g.expression(1)
			g.op("putfield n")
		}
		g.line("%s.end:", l)
	case n == 8:
		g.op("new %s\n  set %d", g.class(), pick(g, g.objects))
	case n < 11 && nested < 3: // a monitor, whose block contains no jump out of it
		g.op("get %d\n  enter", pick(g, g.objects))
		g.statement(nested + 1)
		g.op("exit")
	case n == 11 && nested < 2 && g.loops < 2:
		g.loop(nested)
	case n < 14 && nested < 3:
		g.branch(nested)
	case n == 14:
		g.call(1)
		g.op("set %d", pick(g, g.numbers))
	default:
		g.expression(1)
		g.op(map[bool]string{true: "print", false: "pop"}[g.one(2)])
	}
}

func (g *generator) loop(nested int) {
	g.loops++
	if calls := g.calls; g.one(2) {
		g.calls = 2
		defer func() { g.calls = calls }()
	}
	counter, l := g.local(), g.label()
	g.op("int 0\n  set %d\n%s:", counter, l)
	for range 1 + g.random.IntN(3) {
		g.statement(nested + 1)
	}
	g.op("get %d\n  int 1\n  add\n  dup\n  set %d\n  int %d\n  lt\n  if %s", counter, counter, 1+g.random.IntN(4), l)
}

func (g *generator) branch(nested int) {
	l := g.label()
	g.expression(1)
	if g.one(2) {
		g.op("%s", g.constant())
		g.op("%s", []string{"lt", "le", "eq"}[g.random.IntN(3)])
	}
	g.op("if %s", l)
	g.statement(nested + 1)
	if g.one(2) {
		g.op("jump %s.end\n%s:", l, l)
		g.statement(nested + 1)
		g.line("%s.end:", l)
	} else {
		g.line("%s:", l)
	}
}

// main generates the main method. It calls the highest methods with the number of the round, and in some rounds with another value.
func (g *generator) main() {
	top := append(g.methods[len(g.methods)-6:len(g.methods)-4], g.methods[len(g.methods)-1])
	g.line("method Main.main 0 3")
	rounds := 12 + g.random.IntN(24)
	g.line("  int 0\n  set 0\nround:")
	for n, m := range top {
		for a := range m.numbers {
			l := fmt.Sprintf("arg%d.%d", n, a)
			if a > 0 || !m.recursive {
				g.line("  get 0\n  int %d\n  eq\n  if %s", 5+g.random.IntN(rounds-5), l)
			} else {
				g.line("  int 0\n  if %s", l)
			}
			g.line("  get 0\n  int %d\n  mul\n  jump %s.end\n%s:", 1+g.random.IntN(7), l, l)
			g.line("  %s\n%s.end:", []string{"double 2.5", "int 2000000000", "double -0.0", "int -2147483648"}[g.random.IntN(4)], l)
		}
		for a := range m.objects {
			l := fmt.Sprintf("object%d.%d", n, a)
			g.line("  get 0\n  int %d\n  lt\n  if %s\n  new %s\n  jump %s.end\n%s:\n  new %s\n%s.end:", 5+g.random.IntN(rounds-5), l, g.class(), l, l, g.class(), l)
		}
		g.line("  call %s\n  print", m.name)
	}
	g.line("  get 0\n  int 1\n  add\n  dup\n  set 0\n  int %d\n  lt\n  if round\n  get 0\n  return", rounds)
}
