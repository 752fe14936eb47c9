package interp

import (
	"example.com/reframe/internal/llvm/ir"
)

// function is a function decoded for running: its values are numbered words of a frame, its instructions are consecutive in code.
type function struct {
	ir       *ir.Func
	blocks   []*block
	code     []inst
	src      []*ir.Instr // of each inst
	template []word      // a fresh frame: constants in place, all else undefined
	params   []slot
	ret      *shape
	slots    map[ir.Value]slot
	shorts   []shortWay         // of opShort
	pairs    []shortPair        // of opPair
	tables   []*table           // of opSwitch
	targets  []map[uint64]*edge // of opIndirect: those that were gone to, by address
	cost     uint64             // bytes charged for a frame
	pads     map[*ir.Instr]*pad // of its invokes
}

// slot is the place of a value in the frame.
type slot struct {
	at int
	s  *shape
}

func (p slot) in(fr *frame) []word { return fr.w[p.at : p.at+p.s.words] }

// step runs one instruction that is no phi. A call of a function that has a body
// leaves a new frame on top, ret takes the frame away, and a branch leaves the
// edge to follow in frame.next.
type step func(fr *frame) error

// inst is one instruction. Its step implements it for values of any type and any bits. Where op is not opStep, the loop has a faster way for the
// common case (integers, floats and pointers of one word, every bit known, memory at hand, no flag broken), and runs the step in every other case.
type inst struct {
	op        opcode
	cut       uint8  // bits to shift out and back to extend an index or a signed number
	count     uint8  // instructions of the IR: none is the branch of an invoke
	top       uint8  // of opOffset and opIndex: the highest bit of an address, which must be clear
	rest      uint32 // instructions of the block after this one
	dst, a, b int32  // words of the frame
	c         int32  // another, of opIndex2
	k, s      uint64
	run       step
	yes, no   *edge
}

// opcode selects the way in which the loop may run an instruction without its step.
type opcode uint8

// The shorter ways. Unless a comment says otherwise, k is a mask of the result and s is the sign bit that must not overflow.
const (
	opStep   opcode = iota
	opCall          // the step may change the frame
	opEnd           // a terminator: the step leaves an edge, or takes the frame away
	opRet           // of one word a
	opRetAny        // of none
	opJump          // to yes
	opBranch        // to yes or no, by a
	opMove
	opAdd
	opAddNUW
	opSub
	opSubNUW
	opMul
	opMulNSW // cut
	opMulNUW // s: bits that no product may have
	opUDiv
	opURem
	opSDiv // cut
	opSRem // cut
	opAnd
	opOr // s: bits that must be disjoint
	opXor
	opShl // s: the width
	opShlNSW
	opShlNUW
	opShlBoth
	opLShr // s: the width
	opAShr // s: the width; cut
	opEq   // of the comparisons s: a bit that both operands must have alike
	opNe
	opULT
	opULE
	opSLT  // k: the sign bit
	opSLE  // k: the sign bit
	opEqBr // a comparison and the branch after it
	opNeBr
	opULTBr
	opULEBr
	opSLTBr
	opSLEBr
	opSExt     // cut
	opTrunc    // s: bits that must not be set
	opTruncNSW // cut; s: that of the result
	opSelect   // by word k between a and b
	opOffset   // a + k
	opIndex    // a + b*k + s, b extended by cut
	opIndex2   // a + b*k + c*s + an offset, the upper half of s; b and c extended by cut
	opIndexNUW
	opIndex2NUW
	opLoad8
	opLoad16
	opLoad32
	opLoad64
	opStore8 // a at b
	opStore16
	opStore32
	opStore64
	opFAdd64
	opFSub64
	opFMul64
	opFDiv64
	opFAdd32
	opFSub32
	opFMul32
	opFDiv32
	opFCmp64 // k: a bit for each outcome, as in LLVM: 1 equal, 2 more, 4 less, 8 unordered
	opFCmp32 // k
	opSIToFP64
	opFPExt
	opFNeg     // k: the sign bit
	opShort    // k: which of shorts, of a, b and c
	opPair     // k: which of pairs, of a and b
	opNothing  // but to be counted
	opSwitch   // k: which of tables, by a
	opIndirect // k: which of targets, by a
)

// block is a basic block. Its phis happen on the edges that lead to it.
type block struct {
	ir    *ir.Block
	phis  int
	start int    // its first inst
	size  uint64 // instructions, phis included
	runs  uint64 // how often it was entered
	short int64  // instructions of it that were not run although it was entered, less those run of it where it was not
	stop  bool   // a run is to halt before it
}

// edge goes to a block and gives its phis their values.
type edge struct {
	to    *block
	moves []move
	// simple: all moves are of one word, none reads what an earlier one wrote, and
	// nothing is promised.
	simple   bool
	clash    bool // a move reads what an earlier one wrote, so all are read first
	promises []promise
}

type move struct{ to, from, words int }

// follow gives the phis their values.
func (e *edge) follow(fr *frame) {
	e.move(fr)
	for _, p := range e.promises {
		p.enforce(p.value.in(fr))
	}
}

func (e *edge) move(fr *frame) {
	if !e.clash {
		for _, m := range e.moves {
			copy(fr.w[m.to:m.to+m.words], fr.w[m.from:m.from+m.words])
		}
		return
	}
	read := fr.in.scratch[:0]
	for _, m := range e.moves {
		read = append(read, fr.w[m.from:m.from+m.words]...)
	}
	fr.in.scratch = read
	for _, m := range e.moves {
		copy(fr.w[m.to:m.to+m.words], read)
		read = read[m.words:]
	}
}
