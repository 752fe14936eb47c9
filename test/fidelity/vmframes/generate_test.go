package vmframes_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
)

// The kinds of values, as decode.c numbers them.
const (
	deadKind = iota
	i32Kind
	i64Kind
	f64Kind
	refKind
	boxKind
	pairKind
	wide16Kind
	wide24Kind
	sumKind
	constantKind
	objectKind
	shiftKind
	memoryKind
)

// Static tags of the encoding in keys, as decode.c numbers them.
const (
	deadTag   = 100
	objectTag = 101
	plainTag  = 103
	tag16     = 116
	tag24     = 124
)

// encodings are the three ways in which decode.c finds the frames of an exit. Each has a layout in testdata.
var encodings = []string{"table", "stream", "keys"}

// A program is a random program: functions that call each other, each with one exit that is described in memory.
type program struct {
	*rand.Rand
	functions []describedFunction
	body      strings.Builder // the functions of the module
	in, out   []uint64        // the inputs of all functions, and the constants among their operands
	narrow    bool            // ids have 32 bits

	// The tables that decode.c reads.
	index, exits, frames, values, objects, offsets, entries, stream bytes.Buffer
}

// A describedFunction is a function of a program.
type describedFunction struct {
	name     string
	id       uint64
	encoding int
	out      int // the index of its first operand in vm_out
	loads    strings.Builder
	operands []string // as in the IR
	exit     describedExit
}

// A describedExit is the state of the virtual machine at an exit.
type describedExit struct {
	frames  []describedFrame // the innermost first
	objects []describedObject
}

type describedFrame struct {
	method, position, resume int
	locals, stack, locks     []describedValue
}

type describedObject struct {
	class   int
	offsets []int
	fields  []describedValue
}

type describedValue struct {
	kind, left, right int
	constant          int64
	eliminated        bool
}

// Sizes of the tables of names.
const describedMethods, describedClasses = 32, 5

// maxDepth is the largest number of frames of an exit.
const maxDepth = 4

// describedProgram returns the program of a seed. narrow limits ids to 32 bits: LLVM 14 writes only the lower half of the id of a
// statepoint.
func describedProgram(seed uint64, narrow bool) *program {
	p := &program{Rand: rand.New(rand.NewPCG(seed, 39)), narrow: narrow}
	p.stream.WriteByte(0) // offset 0 is no sender
	p.functions = make([]describedFunction, 3+p.IntN(3))
	first := p.IntN(len(encodings))
	for n := range p.functions {
		f := &p.functions[n]
		f.name, f.encoding, f.out = fmt.Sprint("f", n), (first+n)%len(encodings), len(p.out)
		switch f.encoding {
		case 0:
			p.exit(f)
			f.id = p.id(n)
			p.encodeTable(f)
		case 1:
			p.exit(f)
			f.id = p.id(n)
			p.encodeStream(f)
		case 2:
			p.encodeKeys(f)
		}
		p.write(f, n)
	}
	return p
}

// id returns an id that differs from those of other functions, and is even, unlike those in which keys are packed.
func (p *program) id(function int) uint64 {
	id := p.Uint64()&^0xff | uint64(function)<<1
	if p.narrow {
		id = uint64(uint32(id))
	}
	return id
}

// positionBits returns the number of bits of a position in a packed key.
func (p *program) positionBits() int {
	if p.narrow {
		return 3
	}
	return 9
}

// small returns a number that is often small, or at the end of a range.
func (p *program) small() int64 {
	switch p.IntN(4) {
	case 0:
		return int64(p.IntN(200) - 100)
	case 1:
		return []int64{0, -1, math.MinInt32, math.MaxInt32, math.MinInt64, math.MaxInt64, 1 << 32, 127, -64, 64, 128}[p.IntN(11)]
	case 2:
		return int64(int32(p.Uint32()))
	}
	return int64(p.Uint64())
}

// tag returns a tag of a value, with other bits above it.
func (p *program) tag() uint64 { return p.Uint64()<<8 | uint64(p.IntN(8)) }

// double returns the bits of a number.
func (p *program) double() uint64 {
	return math.Float64bits([]float64{0, -0.5, 1e300, 1.0 / 3, math.Inf(1), -1e-310, float64(p.IntN(1000)) / 8}[p.IntN(7)])
}

// box returns a boxed value.
func (p *program) box() uint64 {
	switch p.IntN(4) {
	case 0:
		return 0
	case 1:
		return uint64(1+p.Int64N(1<<40)) << 3
	case 2:
		return 0xffff<<48 | uint64(p.Uint32())
	}
	return p.double() + 1<<48
}

// input adds an input, and returns its index.
func (p *program) input(bits uint64) int {
	p.in = append(p.in, bits)
	return len(p.in) - 1
}

// operand adds an operand: the text of its value in the IR, and the bits that are known before the program runs. stored is the value in the IR that is
// stored for decode.c, or "".
func (p *program) operand(f *describedFunction, text, stored string, known uint64) int {
	if stored != "" {
		fmt.Fprintf(&f.loads, "  store volatile i64 %s, ptr getelementptr ([0 x i64], ptr @vm_out, i64 0, i64 %d)\n", stored, len(p.out))
	}
	p.out = append(p.out, known)
	f.operands = append(f.operands, text)
	return len(f.operands) - 1
}

// word adds an operand whose bits are computed when the program runs. to is its type in the IR.
func (p *program) word(f *describedFunction, bits uint64, to string) int {
	n := len(p.in)
	change := p.Uint64()
	fmt.Fprintf(&f.loads, "  %%l%d = load volatile i64, ptr getelementptr ([0 x i64], ptr @vm_in, i64 0, i64 %d)\n", n, p.input(bits-change))
	fmt.Fprintf(&f.loads, "  %%v%d = add i64 %%l%d, %d\n", n, n, int64(change))
	v := fmt.Sprintf("%%v%d", n)
	if cast := map[string]string{"i32": "trunc", "double": "bitcast", "ptr": "inttoptr"}[to]; cast != "" {
		fmt.Fprintf(&f.loads, "  %%t%d = %s i64 %s to %s\n", n, cast, v, to)
		return p.operand(f, fmt.Sprintf("%s %%t%d", to, n), v, 0)
	}
	return p.operand(f, "i64 "+v, v, 0)
}

// cell adds an operand that points to words in the stack frame.
func (p *program) cell(f *describedFunction, words ...uint64) int {
	n := len(p.in)
	fmt.Fprintf(&f.loads, "  %%c%d = alloca [%d x i64], align 8\n", n, len(words))
	for k, w := range words {
		fmt.Fprintf(&f.loads, "  %%w%d.%d = load volatile i64, ptr getelementptr ([0 x i64], ptr @vm_in, i64 0, i64 %d)\n", n, k, p.input(w))
		fmt.Fprintf(&f.loads, "  %%p%d.%d = getelementptr i64, ptr %%c%d, i64 %d\n  store volatile i64 %%w%d.%d, ptr %%p%d.%d\n", n, k, n, k, n, k, n, k)
	}
	fmt.Fprintf(&f.loads, "  %%a%d = ptrtoint ptr %%c%d to i64\n", n, n)
	return p.operand(f, fmt.Sprintf("ptr %%c%d", n), fmt.Sprintf("%%a%d", n), 0)
}

// wide24 returns the words of a value of 24 bytes. One that is in memory refers to vm_in, whose address is not known here.
func (p *program) wide24() (words [3]uint64) {
	what, a, b := p.Uint64(), p.Uint64(), p.Uint64()
	switch what & 3 {
	case 1:
		a = p.double() ^ b
	case 3:
		what &^= 1
	}
	return [3]uint64{what, a, b}
}

// inMemory adds an operand that points to a value of 24 bytes whose payload is in memory.
func (p *program) inMemory(f *describedFunction) int {
	payload := p.cell(f, uint64(p.small()))
	n, distance := len(p.in), p.IntN(1<<20)
	at := p.cell(f, p.Uint64()|3, 0, uint64(distance))
	address := strings.TrimPrefix(f.operands[payload], "ptr %c")
	fmt.Fprintf(&f.loads, "  %%m%d = add i64 %%a%s, %d\n  store volatile i64 %%m%d, ptr %%p%d.1\n", n, address, distance, n, n)
	return at
}

// value returns a value, with operands of its own.
func (p *program) value(f *describedFunction, x *describedExit, depth int) describedValue {
	v := describedValue{kind: p.IntN(memoryKind + 1)}
	constant := p.IntN(8) == 0
	switch v.kind {
	case deadKind:
		if depth > 0 {
			return p.value(f, x, depth)
		}
	case i32Kind:
		bits := uint64(p.small())
		if constant {
			v.left = p.operand(f, fmt.Sprint("i32 ", int32(bits)), "", bits)
		} else {
			v.left = p.word(f, bits, "i32")
		}
	case i64Kind:
		bits := uint64(p.small())
		if constant {
			v.left = p.operand(f, fmt.Sprint("i64 ", int64(bits)), "", bits)
		} else {
			v.left = p.word(f, bits, "i64")
		}
	case f64Kind:
		bits := p.double()
		if constant {
			v.left = p.operand(f, fmt.Sprintf("double %#016x", bits), "", bits)
		} else {
			v.left = p.word(f, bits, "double")
		}
	case refKind:
		if constant {
			v.left = p.operand(f, "ptr null", "", 0)
		} else {
			v.left = p.word(f, p.Uint64(), "ptr")
		}
	case boxKind:
		v.left = p.word(f, p.box(), "i64")
	case pairKind:
		v.left, v.right = p.pair(f)
	case wide16Kind:
		v.constant = int64(8 * p.IntN(3))
		words := make([]uint64, v.constant/8, 5)
		v.left = p.cell(f, append(words, p.tag(), uint64(p.small()))...)
	case wide24Kind:
		if p.IntN(4) == 0 {
			v.left = p.inMemory(f)
			break
		}
		v.constant = int64(8 * p.IntN(3))
		words, value := make([]uint64, v.constant/8, 6), p.wide24()
		v.left = p.cell(f, append(words, value[:]...)...)
	case sumKind:
		v.left, v.right = p.word(f, uint64(p.small()), "i64"), p.word(f, uint64(p.small()), "i32")
	case shiftKind:
		v.left, v.right = p.word(f, uint64(p.small()), "i64"), p.word(f, p.Uint64(), "i64")
	case constantKind:
		v.constant = p.small()
	case memoryKind:
		v.constant = int64(4 * p.IntN(4))
		v.left = p.cell(f, p.Uint64(), p.Uint64())
	case objectKind:
		v.constant = int64(p.object(f, x, depth))
	}
	return v
}

// pair adds a tag and a payload as operands, in either order.
func (p *program) pair(f *describedFunction) (tag, payload int) {
	if p.IntN(2) == 0 {
		payload = p.word(f, uint64(p.small()), "i64")
		return p.word(f, p.tag(), "i64"), payload
	}
	return p.word(f, p.tag(), "i64"), p.word(f, uint64(p.small()), "i64")
}

// object returns the number of an object: one that the exit has, or a new one, which may refer to itself.
func (p *program) object(f *describedFunction, x *describedExit, depth int) int {
	if n := len(x.objects); n > 0 && (depth > 2 || n == 6 || p.IntN(2) == 0) {
		return p.IntN(n)
	}
	id := len(x.objects)
	x.objects = append(x.objects, describedObject{class: p.IntN(describedClasses)})
	var o describedObject
	for k := range p.IntN(4) {
		o.offsets = append(o.offsets, 8+16*k+p.IntN(2)*4)
		o.fields = append(o.fields, p.value(f, x, depth+1))
	}
	x.objects[id].offsets, x.objects[id].fields = o.offsets, o.fields
	return id
}

// exit makes the state of an exit: frames that share an object.
func (p *program) exit(f *describedFunction) {
	x := &f.exit
	for n := range 2 + p.IntN(maxDepth-1) {
		fr := describedFrame{method: p.IntN(describedMethods), position: p.IntN(70_000), resume: 2}
		if n == 0 {
			fr.resume = p.IntN(4)
		}
		for range p.IntN(4) {
			fr.locals = append(fr.locals, p.value(f, x, 0))
		}
		fr.locals = append(fr.locals, describedValue{kind: objectKind, constant: int64(p.object(f, x, 0))})
		for range p.IntN(3) {
			fr.stack = append(fr.stack, p.value(f, x, 0))
		}
		for range p.IntN(2) {
			lock := describedValue{kind: objectKind, constant: int64(p.object(f, x, 0)), eliminated: true}
			if p.IntN(2) == 0 {
				lock = describedValue{kind: refKind, left: p.word(f, p.Uint64(), "ptr")}
			}
			fr.locks = append(fr.locks, lock)
		}
		x.frames = append(x.frames, fr)
	}
	if len(f.operands) == 0 {
		p.word(f, 0, "i64") // an exit without operands has no deopt bundle
	}
}

// put appends numbers to a table of C structs.
func put(b *bytes.Buffer, fields ...any) {
	for _, v := range fields {
		if err := binary.Write(b, binary.LittleEndian, v); err != nil {
			panic(err)
		}
	}
}

func (p *program) tableValues(list ...describedValue) {
	for _, v := range list {
		flag := byte(0)
		if v.eliminated {
			flag = 1
		}
		put(&p.values, byte(v.kind), flag, uint16(v.left), uint16(v.right), uint16(0), v.constant)
	}
}

// Sizes of the structs of decode.c.
const exitSize, frameSize, valueSize, objectSize, entrySize = 24, 20, 16, 16, 16

func (p *program) encodeTable(f *describedFunction) {
	put(&p.exits, f.id, uint32(p.frames.Len()/frameSize), uint32(len(f.exit.frames)), uint32(p.objects.Len()/objectSize), uint32(len(f.exit.objects)))
	for _, fr := range f.exit.frames {
		put(&p.frames, uint32(fr.method), uint32(fr.position), uint32(p.values.Len()/valueSize), uint16(len(fr.locals)), uint16(len(fr.stack)), uint16(len(fr.locks)), uint16(fr.resume))
		p.tableValues(fr.locals...)
		p.tableValues(fr.stack...)
		p.tableValues(fr.locks...)
	}
	for _, o := range f.exit.objects {
		put(&p.objects, uint32(o.class), uint32(p.values.Len()/valueSize), uint32(p.offsets.Len()/4), uint16(len(o.fields)), uint16(0))
		for _, at := range o.offsets {
			put(&p.offsets, uint32(at))
		}
		p.tableValues(o.fields...)
	}
}

func (p *program) uleb(list ...int) {
	for _, v := range list {
		p.stream.Write(binary.AppendUvarint(nil, uint64(v)))
	}
}

func (p *program) sleb(v int64) {
	for {
		b := byte(v & 127)
		v >>= 7
		if v == 0 && b&64 == 0 || v == -1 && b&64 != 0 {
			p.stream.WriteByte(b)
			return
		}
		p.stream.WriteByte(b | 128)
	}
}

func (p *program) streamValues(list ...describedValue) {
	for _, v := range list {
		p.streamValue(v)
	}
}

func (p *program) streamValue(v describedValue) {
	p.uleb(v.left<<4 | v.kind)
	switch v.kind {
	case pairKind, sumKind, shiftKind:
		p.uleb(v.right)
	case wide16Kind, wide24Kind, constantKind, objectKind, memoryKind:
		p.sleb(v.constant)
	}
}

func (p *program) encodeStream(f *describedFunction) {
	sender := 0
	for n := len(f.exit.frames) - 1; n >= 0; n-- {
		fr := f.exit.frames[n]
		at := p.stream.Len()
		p.uleb(sender, fr.method, fr.position, fr.resume, len(fr.locals))
		p.streamValues(fr.locals...)
		p.uleb(len(fr.stack))
		p.streamValues(fr.stack...)
		p.uleb(len(fr.locks))
		for _, v := range fr.locks {
			flag := 0
			if v.eliminated {
				flag = 1
			}
			p.uleb(flag)
			p.streamValue(v)
		}
		sender = at
	}
	put(&p.entries, f.id, uint32(sender), uint32(p.stream.Len()))
	p.uleb(len(f.exit.objects))
	for _, o := range f.exit.objects {
		p.uleb(o.class, len(o.fields))
		for k, v := range o.fields {
			p.uleb(o.offsets[k])
			p.streamValue(v)
		}
	}
}

// encodeKeys makes an exit whose frames are packed in the id. The operands are its values, and then its objects.
func (p *program) encodeKeys(f *describedFunction) {
	constant := func(v int64) { p.operand(f, fmt.Sprint("i64 ", v), "", uint64(v)) }
	depth, objects, bits := 2, 1+p.IntN(3), p.positionBits()
	if !p.narrow {
		depth += p.IntN(2)
	}
	value := func() {
		switch p.IntN(8) {
		case 0:
			constant(deadTag)
			constant(0)
		case 1, 2:
			constant(objectTag)
			constant(int64(p.IntN(objects)))
		case 3:
			constant(plainTag)
			if p.IntN(2) == 0 {
				constant(p.small())
			} else {
				p.word(f, uint64(p.small()), "i64")
			}
		case 4:
			constant(tag16)
			p.cell(f, p.tag(), uint64(p.small()))
		case 5:
			constant(tag24)
			words := p.wide24()
			p.cell(f, words[:]...)
		default:
			p.word(f, p.tag(), "i64")
			p.word(f, uint64(p.small()), "i64")
		}
	}
	f.id = uint64(p.IntN(4))<<3 | uint64(depth-1)<<1 | 1
	for n := range depth {
		locals, stack := 1+p.IntN(6), p.IntN(4)
		key := p.IntN(describedMethods) | p.IntN(1<<bits)<<5 | locals<<(5+bits) | stack<<(8+bits)
		f.id |= uint64(key) << (5 + (10+bits)*n)
		for range locals + stack {
			value()
		}
	}
	constant(int64(objects))
	for range objects {
		constant(int64(p.IntN(describedClasses)))
		fields := p.IntN(4)
		constant(int64(fields))
		for k := range fields {
			constant(int64(8 + 16*k))
			value()
		}
	}
}

// write adds a function to the module.
func (p *program) write(f *describedFunction, n int) {
	callee := "take_over"
	if n+1 < len(p.functions) {
		callee = fmt.Sprint("f", n+1)
	}
	parameters := ""
	if callee != "take_over" {
		parameters = "i64 %x"
	}
	fmt.Fprintf(&p.body, "define i64 @%s(i64 %%x) {\n%s  %%r = call i64 @%s(%s) #%d [ \"deopt\"(%s) ]\n  %%s = add i64 %%r, %%x\n  ret i64 %%s\n}\n\n",
		f.name, f.loads.String(), callee, parameters, n, strings.Join(f.operands, ", "))
	fmt.Fprintf(&p.body, "attributes #%d = { \"statepoint-id\"=\"%d\" }\n\n", n, f.id)
	name := make([]byte, 8)
	copy(name, f.name)
	put(&p.index, name, f.id, uint32(f.encoding), uint32(f.out))
}

// IR returns the text of the module, with the tables that decode.c reads.
func (p *program) IR() string {
	var b strings.Builder
	b.WriteString("target datalayout = \"e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-f80:128-n8:16:32:64-S128\"\ntarget triple = \"x86_64-pc-linux-gnu\"\ndeclare i64 @take_over()\n\n")
	global := func(name string, content []byte) {
		fmt.Fprintf(&b, "@%s = global [%d x i8] c\"", name, len(content)+1) // none is empty
		for _, c := range content {
			fmt.Fprintf(&b, "\\%02X", c)
		}
		b.WriteString("\\00\", align 8\n")
	}
	words := func(name string, list []uint64) {
		var all bytes.Buffer
		put(&all, list)
		global(name, all.Bytes())
	}
	names := func(of string, n int) (all []byte) {
		for k := range n {
			name := make([]byte, 16)
			copy(name, fmt.Sprintf("%s.%d", of, k))
			all = append(all, name...)
		}
		return all
	}
	global("vm_functions", p.index.Bytes())
	global("vm_exits", p.exits.Bytes())
	global("vm_frames", p.frames.Bytes())
	global("vm_values", p.values.Bytes())
	global("vm_objects", p.objects.Bytes())
	global("vm_offsets", p.offsets.Bytes())
	global("vm_index", p.entries.Bytes())
	global("vm_stream", p.stream.Bytes())
	global("vm_methods", names("Method", describedMethods))
	global("vm_classes", names("Class", describedClasses))
	words("vm_in", p.in)
	words("vm_out", p.out)
	fmt.Fprintf(&b, "@vm_function_count = global i32 %d\n@vm_exit_count = global i32 %d\n@vm_entry_count = global i32 %d\n@vm_position_bits = global i32 %d\n\n",
		len(p.functions), p.exits.Len()/exitSize, p.entries.Len()/entrySize, p.positionBits())
	b.WriteString(p.body.String())
	return b.String()
}
