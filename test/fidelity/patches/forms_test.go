package patches_test

import (
	"encoding/binary"
	"math/rand/v2"
)

// A patch is code that overwrites a site.
type patch struct {
	random *rand.Rand
	at     uint64 // address of the first byte
	code   []byte
	stub   *stub
	addr   func(symbol string) uint64
}

func (p *patch) put(bytes ...byte) { p.code = append(p.code, bytes...) }

func (p *patch) word(v uint32) { p.code = binary.LittleEndian.AppendUint32(p.code, v) }

func (p *patch) long(v uint64) { p.code = binary.LittleEndian.AppendUint64(p.code, v) }

func (p *patch) next() uint64 { return p.at + uint64(len(p.code)) }

// relative writes an x86-64 instruction whose last operand is the distance to a symbol.
func (p *patch) relative(symbol string, op ...byte) {
	p.put(op...)
	p.word(uint32(p.addr(symbol) - p.next() - 4))
}

// A form is a kind of patch.
type form struct {
	name   string
	weight int
	write  func(p *patch)
	signal bool // the patch raises a signal
	own    bool // the patch leads to handler instead of a stub
}

const (
	callOp = 0xe8
	jumpOp = 0xe9
)

var amd64Forms = []*form{
	{name: "call handler", weight: 4, own: true, write: func(p *patch) { p.relative("handler", callOp) }},
	{name: "call stub", weight: 4, write: func(p *patch) { p.relative(p.stub.name(), callOp) }},
	{name: "call through memory", weight: 2, write: func(p *patch) { p.relative("slot"+p.stub.name()[4:], 0xff, 0x15) }},
	{name: "movabs, call register", weight: 2, write: func(p *patch) {
		p.put(0x49, 0xbb)
		p.long(p.addr(p.stub.name()))
		p.put(0x41, 0xff, 0xd3)
	}},
	{name: "mov, call register", weight: 1, own: true, write: func(p *patch) {
		p.put(0xb8)
		p.word(uint32(p.addr("handler")))
		p.put(0xff, 0xd0)
	}},
	{name: "call thunk", weight: 2, write: func(p *patch) { p.relative("thunk"+p.stub.name()[4:], callOp) }},
	{name: "jump to stub", weight: 8, write: func(p *patch) { p.relative(p.stub.name(), jumpOp) }},
	{name: "jump to thunk", weight: 3, write: func(p *patch) { p.relative("thunk"+p.stub.name()[4:], jumpOp) }},
	{name: "jump through memory", weight: 2, write: func(p *patch) { p.relative("slot"+p.stub.name()[4:], 0xff, 0x25) }},
	{name: "movabs, jump register", weight: 2, write: func(p *patch) {
		p.put(0x49, 0xbb)
		p.long(p.addr(p.stub.name()))
		p.put(0x41, 0xff, 0xe3)
	}},
	{name: "jump to handler", weight: 1, own: true, write: func(p *patch) { p.relative("handler", jumpOp) }},
	{name: "push, jump to stub", weight: 3, write: func(p *patch) {
		p.put(0x6a, 77)
		p.relative(p.stub.name(), jumpOp)
	}},
	{name: "push, call", weight: 2, own: true, write: func(p *patch) {
		p.put(0x6a, 77)
		p.relative("handler", callOp)
	}},
	{name: "push, push, call", weight: 1, own: true, write: func(p *patch) {
		p.put(0x6a, 77, 0x68)
		p.word(1234)
		p.relative("handler", callOp)
	}},
	{name: "mov r11d, jump to stub", weight: 2, write: func(p *patch) {
		p.put(0x41, 0xbb)
		p.word(77)
		p.relative(p.stub.name(), jumpOp)
	}},
	{name: "mov edi, call", weight: 2, own: true, write: func(p *patch) {
		p.put(0xbf)
		p.word(77)
		p.relative("handler", callOp)
	}},
	{name: "push, ret", weight: 1, write: func(p *patch) {
		p.put(0x68)
		p.word(uint32(p.addr(p.stub.name())))
		p.put(0xc3)
	}},
	{name: "sub rsp, call", weight: 2, own: true, write: func(p *patch) {
		p.put(0x48, 0x83, 0xec, byte(8*(1+p.random.IntN(8))))
		p.relative("handler", callOp)
	}},
	{name: "xor eax, je stub", weight: 2, write: func(p *patch) {
		p.put(0x31, 0xc0)
		p.relative(p.stub.name(), 0x0f, 0x84)
	}},
	{name: "cmp, jne stub", weight: 2, write: func(p *patch) {
		p.put(0x48, 0x81, 0xfc) // cmp $5, %rsp
		p.word(5)
		p.relative(p.stub.name(), 0x0f, 0x85)
	}},
	{name: "jump over, call", weight: 1, own: true, write: func(p *patch) {
		p.put(0xeb, 4, 0xcc, 0xcc, 0xcc, 0xcc)
		p.relative("handler", callOp)
	}},
	{name: "lea rdi, call", weight: 1, own: true, write: func(p *patch) {
		p.put(0x48, 0x8d, 0x7c, 0x24, 0)
		p.relative("handler", callOp)
	}},
	{name: "int3", weight: 3, own: true, signal: true, write: func(p *patch) { p.put(0xcc) }},
	{name: "int3s", weight: 1, own: true, signal: true, write: func(p *patch) {
		for range 12 {
			p.put(0xcc)
		}
	}},
	{name: "ud2", weight: 2, own: true, signal: true, write: func(p *patch) { p.put(0x0f, 0x0b) }},
	{name: "hlt", weight: 1, own: true, signal: true, write: func(p *patch) { p.put(0xf4) }},
	{name: "load of nothing", weight: 1, own: true, signal: true, write: func(p *patch) { p.put(0x8b, 0x04, 0x25, 0, 0, 0, 0) }},
}

// branch writes an arm64 branch with a 26-bit offset to a symbol.
func (p *patch) branch(op uint32, symbol string) {
	p.word(op | uint32(int64(p.addr(symbol)-p.next())>>2)&0x3ffffff)
}

// move loads the address of a symbol into a register of arm64.
func (p *patch) move(register uint32, symbol string) {
	a := p.addr(symbol)
	p.word(0xd2800000 | uint32(a&0xffff)<<5 | register)
	p.word(0xf2a00000 | uint32(a>>16&0xffff)<<5 | register)
}

const (
	blOp  = 0x94000000
	bOp   = 0x14000000
	nopOp = 0xd503201f
)

var arm64Forms = []*form{
	{name: "bl handler", weight: 4, own: true, write: func(p *patch) { p.branch(blOp, "handler") }},
	{name: "bl stub", weight: 4, write: func(p *patch) { p.branch(blOp, p.stub.name()) }},
	{name: "bl thunk", weight: 2, write: func(p *patch) { p.branch(blOp, "thunk"+p.stub.name()[4:]) }},
	{name: "b stub", weight: 6, write: func(p *patch) { p.branch(bOp, p.stub.name()) }},
	{name: "b thunk", weight: 3, write: func(p *patch) { p.branch(bOp, "thunk"+p.stub.name()[4:]) }},
	{name: "mov, br register", weight: 2, write: func(p *patch) {
		p.move(16, p.stub.name())
		p.word(0xd61f0000 | 16<<5)
	}},
	{name: "mov, blr register", weight: 3, write: func(p *patch) {
		p.move(16, p.stub.name())
		p.word(0xd63f0000 | 16<<5)
	}},
	{name: "mov x17, b stub", weight: 2, write: func(p *patch) {
		p.word(0xd2800000 | 77<<5 | 17)
		p.branch(bOp, p.stub.name())
	}},
	{name: "mov x0, bl handler", weight: 2, own: true, write: func(p *patch) {
		p.word(0xd2800000 | 77<<5)
		p.branch(blOp, "handler")
	}},
	{name: "str, bl handler", weight: 2, own: true, write: func(p *patch) {
		p.word(0xf81f0fe0) // str x0, [sp, #-16]!
		p.branch(blOp, "handler")
	}},
	{name: "cbz xzr, stub", weight: 2, write: func(p *patch) {
		p.word(0xb4000000 | uint32(int64(p.addr(p.stub.name())-p.next())>>2)&0x7ffff<<5 | 31)
	}},
	{name: "brk", weight: 3, own: true, signal: true, write: func(p *patch) { p.word(0xd4200000) }},
	{name: "udf", weight: 2, own: true, signal: true, write: func(p *patch) { p.word(0) }},
}

// nops writes n instructions that have no effect.
func (p *patch) nops(machine string, n int) {
	for len(p.code) < n {
		if machine == "arm64" {
			p.word(nopOp)
		} else {
			p.put(0x90)
		}
	}
}

// formsOf returns the forms of patch for a machine. Each occurs as often as its weight.
func formsOf(machine string) (list []*form) {
	all := amd64Forms
	if machine == "arm64" {
		all = arm64Forms
	}
	for _, x := range all {
		if only != "" && x.name != only {
			continue
		}
		for range x.weight {
			list = append(list, x)
		}
	}
	return list
}
