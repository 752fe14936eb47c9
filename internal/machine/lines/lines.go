package lines

import (
	"cmp"
	"fmt"
	"slices"
	"sort"
	"strings"

	"example.com/reframe/deopt/frame"
	"example.com/reframe/internal/machine"
)

// lineTable is the line number table of a unit.
type lineTable struct {
	rows      []row // the rows of each sequence are adjacent and ascend by address
	sequences []sequence
	files     []file
	dirs      []string
	first     int // the number of the first file
	unit      *unit
	compDir   string
	name      string // the unit's own file, as it was named on the compiler's command line
}

// row is the source line of the code from addr up to the next row.
type row struct {
	addr         uint64
	file         uint32
	line, column uint32
	stmt         bool // is_stmt: a recommended breakpoint location
}

// sequence is a contiguous range of code and its rows.
type sequence struct {
	machine.Range
	from, to int
}

type file struct {
	name string
	dir  uint64
}

// running is the number of bytes that executing one byte of a line number program takes from the [Budget].
const running = 8

// lineTable reads the line number table of the unit; nil if it has none.
func (u *unit) lineTable() (*lineTable, error) {
	if !u.root.stmtList.present() {
		return nil, nil
	}
	off := u.root.stmtList.u
	if t := u.r.lines[off]; t != nil {
		return t, nil
	}
	s, err := u.r.section(".debug_line")
	if err != nil {
		return nil, err
	}
	head, err := s.upTo(off, 12)
	if err != nil {
		return nil, err
	}
	b := buf{data: head, order: u.r.order}
	n, wide := b.length()
	if b.err != nil {
		return nil, s.fail(off, "%w", b.err)
	}
	start := off + uint64(b.pos)
	data, err := s.bytes(start, n)
	if err != nil {
		return nil, err
	}
	if !u.r.budget.take(running * int64(len(data))) {
		return nil, s.costly()
	}
	t := &lineTable{unit: u}
	if t.compDir, err = u.text(u.root.compDir); err != nil {
		return nil, err
	}
	if t.name, err = u.text(u.root.name); err != nil {
		return nil, err
	}
	p := lineProgram{buf: buf{data: data, base: start, order: u.r.order}, table: t, addr: u.sizes.addr, offset: 4}
	if wide {
		p.offset = 8
	}
	p.header()
	if p.err == nil {
		p.run()
	}
	if p.err != nil {
		return nil, s.fail(start, "%w", p.err)
	}
	slices.SortStableFunc(t.sequences, func(a, b sequence) int { return cmp.Compare(a.Start, b.Start) })
	u.r.lines[off] = t
	return t, nil
}

// find returns the file and line of an address. Of several rows at one address it takes the last with is_stmt, or else the last, as gdb does.
func (t *lineTable) find(pc uint64) frame.Source {
	n := sort.Search(len(t.sequences), func(i int) bool { return t.sequences[i].Start > machine.Addr(pc) })
	for n--; n >= 0 && machine.Addr(pc) >= t.sequences[n].End; n-- {
		if n > 0 && t.sequences[n-1].End <= t.sequences[n].Start {
			return frame.Source{} // the sequences overlap, as only in a broken table
		}
	}
	if n < 0 {
		return frame.Source{}
	}
	rows := t.rows[t.sequences[n].from:t.sequences[n].to]
	k := sort.Search(len(rows), func(i int) bool { return rows[i].addr > pc }) - 1
	if k < 0 {
		return frame.Source{}
	}
	for i := k; i >= 0 && rows[i].addr == rows[k].addr && rows[i].line != 0; i-- {
		if rows[i].stmt {
			k = i
			break
		}
	}
	return frame.Source{File: t.file(uint64(rows[k].file)), Line: int(rows[k].line), Column: int(rows[k].column)}
}

// file returns the name of a file as gdb shows it: as on the compiler's command line, relative to the compiler's working directory.
func (t *lineTable) file(n uint64) string {
	if n -= uint64(t.first); n >= uint64(len(t.files)) {
		return ""
	}
	f := t.files[n]
	name := f.name
	if !strings.HasPrefix(name, "/") && f.dir < uint64(len(t.dirs)) {
		if dir := t.dirs[f.dir]; dir != "" && dir != t.compDir {
			name = join(dir, name)
		}
	}
	if join(t.compDir, name) == join(t.compDir, t.name) {
		return t.name
	}
	return name
}

// join appends a name to a directory, without cleaning the path.
func join(dir, name string) string {
	if strings.HasPrefix(name, "/") || dir == "" {
		return name
	}
	return strings.TrimSuffix(dir, "/") + "/" + strings.TrimPrefix(name, "./")
}

// lineProgram runs a line number program (DWARF 5, 6.2; DWARF 4, 6.2).
type lineProgram struct {
	buf
	table        *lineTable
	version      int
	addr, offset int // sizes of addresses and offsets in bytes

	minLength, maxOps   uint64
	defaultStmt         bool
	lineBase            int64
	lineRange, lastCode uint64
	lengths             []uint64 // numbers of operands of the standard opcodes, from opcode 1 on
}

// header reads the header of the line number program.
func (p *lineProgram) header() {
	p.version = int(p.uint(2))
	if p.err == nil && (p.version < 2 || p.version > 5) {
		p.fail(fmt.Errorf("a line table of DWARF %d, which is not supported", p.version))
	}
	if p.version >= 5 {
		p.addr = int(p.uint(1))
		p.uint(1) // the size of a segment selector
	}
	length := p.uint(p.offset)
	program := uint64(p.pos) + length
	if p.err == nil && (length > uint64(len(p.data)) || program > uint64(len(p.data))) {
		p.fail(errTruncated)
	}
	p.minLength, p.maxOps = p.uint(1), 1
	if p.version >= 4 {
		p.maxOps = p.uint(1)
	}
	p.defaultStmt = p.uint(1) != 0
	p.lineBase, p.lineRange = int64(int8(p.uint(1))), p.uint(1)
	p.lastCode = p.uint(1)
	if p.err == nil && (p.lineRange == 0 || p.maxOps == 0 || p.lastCode == 0) {
		p.fail(fmt.Errorf("a line range, number of operations or first opcode is 0"))
	}
	for n := uint64(1); n < p.lastCode && p.err == nil; n++ {
		p.lengths = append(p.lengths, p.uint(1))
	}
	t := p.table
	if p.version >= 5 {
		for _, d := range p.paths() {
			t.dirs = append(t.dirs, d.name)
		}
		t.files = p.paths()
	} else {
		t.first = 1
		t.dirs = []string{""} // the unit's own directory
		for p.err == nil {
			name := p.inPlace()
			if name == "" {
				break
			}
			t.dirs = append(t.dirs, name)
		}
		for p.err == nil {
			name := p.inPlace()
			if name == "" {
				break
			}
			t.files = append(t.files, p.oldFile(name))
		}
	}
	if p.err == nil && uint64(p.pos) > program {
		p.fail(fmt.Errorf("the header exceeds its stated length"))
	}
	if p.err == nil {
		p.pos = int(program)
	}
}

// inPlace reads a string at the current position.
func (p *lineProgram) inPlace() string {
	from := p.pos
	p.skipString()
	if p.err != nil {
		return ""
	}
	return string(p.data[from : p.pos-1])
}

// oldFile reads the rest of a row of DWARF 4's file table: the directory, the time of change and the size after the name.
func (p *lineProgram) oldFile(name string) file {
	f := file{name, p.uleb()}
	p.uleb()
	p.uleb()
	return f
}

// These are the content types of columns in a table of paths (DWARF 5, 7.22).
const (
	lnctPath           = 1
	lnctDirectoryIndex = 2
)

// paths reads the table of directories or files of DWARF 5.
func (p *lineProgram) paths() (list []file) {
	var columns []attr
	for n := p.uint(1); n > 0 && p.err == nil; n-- {
		columns = append(columns, attr{name: uint32(p.uleb()), form: uint32(p.uleb())})
	}
	sizes := formSizes{addr: p.addr, offset: p.offset, refAddr: p.offset}
	for n := p.uleb(); n > 0 && p.err == nil; n-- {
		var f file
		from := p.pos
		for _, c := range columns {
			v := p.value(c, sizes)
			switch c.name {
			case lnctPath:
				f.name = p.text(v)
			case lnctDirectoryIndex:
				f.dir = v.u
			}
		}
		if p.pos == from && p.err == nil {
			p.fail(fmt.Errorf("a table of %d paths that have no bytes", n))
		}
		list = append(list, f)
		if !p.table.unit.r.budget.hold(32) {
			p.fail(ErrCostly)
		}
	}
	return list
}

// text returns the string that a value in the header refers to.
func (p *lineProgram) text(v value) string {
	if p.err != nil {
		return ""
	}
	if v.form == formString {
		from := int(v.u - p.base)
		return string(p.data[from : p.pos-1])
	}
	text, err := p.table.unit.text(v)
	if err != nil {
		p.fail(err)
	}
	return text
}

// These are the opcodes of a line number program (DWARF 5, 7.22).
const (
	lnsExtended = iota
	lnsCopy
	lnsAdvancePC
	lnsAdvanceLine
	lnsSetFile
	lnsSetColumn
	lnsNegateStmt
	lnsSetBasicBlock
	lnsConstAddPC
	lnsFixedAdvancePC
	lnsSetPrologueEnd
	lnsSetEpilogueBegin
	lnsSetISA

	lneEndSequence = 1
	lneSetAddress  = 2
	lneDefineFile  = 3
)

// machineState holds the registers of the state machine that this package uses.
type machineState struct {
	row
	op     uint64 // op_index: the operation in a VLIW instruction
	line64 int64
}

func (p *lineProgram) start() machineState {
	return machineState{row: row{file: 1, stmt: p.defaultStmt}, line64: 1}
}

// advance advances the address by n operations.
func (p *lineProgram) advance(s *machineState, n uint64) {
	if p.maxOps == 1 {
		s.addr += p.minLength * n
		return
	}
	s.addr += p.minLength * ((s.op + n) / p.maxOps)
	s.op = (s.op + n) % p.maxOps
}

// run executes the program and appends its rows.
func (p *lineProgram) run() {
	t := p.table
	from := 0
	emit := func(s *machineState) {
		r := s.row
		if r.line = uint32(s.line64); s.line64 < 0 || s.line64 > 1<<31-1 {
			r.line = 0
		}
		t.rows = append(t.rows, r)
		if !t.unit.r.budget.hold(32) {
			p.fail(ErrCostly)
		}
	}
	s := p.start()
	for p.more() && p.err == nil {
		op := p.uint(1)
		if op >= p.lastCode {
			op -= p.lastCode
			p.advance(&s, op/p.lineRange)
			s.line64 += p.lineBase + int64(op%p.lineRange)
			emit(&s)
			continue
		}
		switch op {
		case lnsExtended:
			n := p.uleb()
			end := uint64(p.pos) + n
			if p.err == nil && (n == 0 || n > uint64(len(p.data)-p.pos)) {
				p.fail(errTruncated)
			}
			if p.err != nil {
				return
			}
			switch p.uint(1) {
			case lneEndSequence:
				p.endSequence(from, s.addr)
				from, s = len(t.rows), p.start()
			case lneSetAddress:
				if n-1 == 4 || n-1 == 8 {
					s.addr, s.op = p.uint(int(n-1)), 0
				}
			case lneDefineFile:
				t.files = append(t.files, p.oldFile(p.inPlace()))
			}
			if p.err == nil {
				p.pos = int(end)
			}
		case lnsCopy:
			emit(&s)
		case lnsAdvancePC:
			p.advance(&s, p.uleb())
		case lnsAdvanceLine:
			s.line64 += p.sleb()
		case lnsSetFile:
			s.file = uint32(p.uleb())
		case lnsSetColumn:
			s.column = uint32(min(p.uleb(), 1<<31-1))
		case lnsNegateStmt:
			s.stmt = !s.stmt
		case lnsConstAddPC:
			p.advance(&s, (255-p.lastCode)/p.lineRange)
		case lnsFixedAdvancePC:
			s.addr += p.uint(2)
			s.op = 0
		case lnsSetBasicBlock, lnsSetPrologueEnd, lnsSetEpilogueBegin:
		default:
			for n := p.lengths[op-1]; n > 0 && p.err == nil; n-- {
				p.uleb()
			}
		}
	}
}

// endSequence makes a sequence of the rows from index from on. end is the address past its code.
func (p *lineProgram) endSequence(from int, end uint64) {
	t := p.table
	rows := t.rows[from:]
	if len(rows) == 0 {
		return
	}
	byAddr := func(a, b row) int { return cmp.Compare(a.addr, b.addr) }
	if !slices.IsSortedFunc(rows, byAddr) {
		slices.SortStableFunc(rows, byAddr)
	}
	if s := p.table.unit.r.span(rows[0].addr, end); !s.Empty() {
		t.sequences = append(t.sequences, sequence{s, from, len(t.rows)})
	}
}
