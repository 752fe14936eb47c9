package interp

import (
	"example.com/reframe/internal/llvm/ir"
)

// function is a decoded function. Each of its values has words in a frame. Its instructions are in code, block after block.
type function struct {
	ir       *ir.Func
	blocks   []*block
	code     []inst
	src      []*ir.Instr // the IR instruction of each inst
	template []word      // initial words of a frame: the constants, and undefined words for all other values
	params   []slot
	ret      *shape
	slots    map[ir.Value]slot
	shorts   []shortWay         // indexed by k of opShort
	pairs    []shortPair        // indexed by k of opPair
	tables   []*table           // indexed by k of opSwitch
	targets  []map[uint64]*edge // indexed by k of opIndirect: the edges taken so far, by target address
	cost     uint64             // bytes charged for a frame
	pads     map[*ir.Instr]*pad // unwind edges of its invokes
}

// slot is the location of a value in the frame.
type slot struct {
	at int
	s  *shape
}

func (p slot) in(fr *frame) []word { return fr.w[p.at : p.at+p.s.words] }

// step runs one instruction other than a phi. A call of a function with a body pushes a frame, a ret pops it, and a branch stores the edge to follow
// in frame.next.
type step func(fr *frame) error

// inst is one decoded instruction. Its step handles values of any type, with unknown bits. If op is not opStep, the loop also has a fast path for the
// common case: integers, floats and pointers of one word, every bit known, the page cached, no flag violated. In every other case the loop runs the
// step.
type inst struct {
	op        opcode
	cut       uint8  // shift count to sign-extend an index or a narrow signed number
	count     uint8  // number of IR instructions; 0 for the branch of an invoke
	top       uint8  // for opOffset and opIndex: the bit that must be clear in an address
	rest      uint32 // number of instructions after this one in the block
	dst, a, b int32  // words of the frame: result and operands
	c         int32  // third operand, for opIndex2
	k, s      uint64
	run       step
	yes, no   *edge
}

// opcode selects the loop's fast path for an instruction.
type opcode uint8

// The fast paths. Unless a comment says otherwise, k is a mask of the result and s is the sign bit that must not overflow.
const (
	opStep   opcode = iota
	opCall          // the step may push or pop a frame
	opEnd           // a terminator: the step sets an edge or pops the frame
	opRet           // returns word a
	opRetAny        // returns no value
	opJump          // follows the edge yes
	opBranch        // follows the edge yes or no, depending on a
	opMove
	opAdd
	opAddNUW
	opSub
	opSubNUW
	opMul
	opMulNSW // uses cut
	opMulNUW // s: the bits that must be clear in the product
	opUDiv
	opURem
	opSDiv // uses cut
	opSRem // uses cut
	opAnd
	opOr // s: bits that must be disjoint
	opXor
	opShl // s: the width
	opShlNSW
	opShlNUW
	opShlBoth
	opLShr // s: the width
	opAShr // s: the width; uses cut
	opEq   // comparisons: s is a bit that must be equal in both operands
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
	opSExt     // uses cut
	opTrunc    // s: the bits that must be clear
	opTruncNSW // uses cut; s: the shift count of the result
	opSelect   // word k selects a or b
	opOffset   // a + k
	opIndex    // a + b*k + s, b sign-extended by cut
	opIndex2   // a + b*k + c*s + an offset, in the upper half of s; b and c sign-extended by cut
	opIndexNUW
	opIndex2NUW
	opLoad8
	opLoad16
	opLoad32
	opLoad64
	opStore8 // stores a at b
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
	opFCmp64 // k: a bit for each outcome, as in LLVM: 1 equal, 2 greater, 4 less, 8 unordered
	opFCmp32 // k
	opSIToFP64
	opFPExt
	opFNeg     // k: the sign bit
	opShort    // k: index into shorts; operands a, b and c
	opPair     // k: index into pairs; operands a and b
	opNothing  // no effect, but counts as a step
	opSwitch   // k: index into tables; selects by a
	opIndirect // k: index into targets; selects by a
)

// block is a basic block. Its phis are set by the edge through which the block is entered.
type block struct {
	ir    *ir.Block
	phis  int
	start int    // index of its first inst
	size  uint64 // instructions, phis included
	runs  uint64 // number of times that it was entered
	short int64  // number of instructions counted in size*runs that did not run; negative if the run started inside the block
	stop  bool   // a run halts before the block
}

// edge is a branch to a block. It holds the moves that set the phis of the block.
type edge struct {
	to    *block
	moves []move
	// simple is set if all three conditions hold: every move copies one word, no move reads a word that an earlier one wrote, and no phi has nnan or
	// ninf.
	simple   bool
	clash    bool // a move reads a word that an earlier move wrote: read all words before writing any
	promises []promise
}

type move struct{ to, from, words int }

// follow sets the phis of the block to which the edge leads.
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
