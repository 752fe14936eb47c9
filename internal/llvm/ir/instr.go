package ir

import "math/big"

var fastMath = NoNaNs | NoInfs | NoSignedZeros | AllowReciprocal | AllowContract | ApproxFunc | Reassoc

var flagWords = map[string]Flags{
	"nsw": NSW, "nuw": NUW, "exact": Exact, "inbounds": InBounds | NUSW, "nusw": NUSW, "disjoint": Disjoint,
	"nneg": NNeg, "samesign": SameSign,
	"nnan": NoNaNs, "ninf": NoInfs, "nsz": NoSignedZeros, "arcp": AllowReciprocal, "contract": AllowContract,
	"afn": ApproxFunc, "reassoc": Reassoc, "fast": fastMath,
}

// flagsOf returns the flags that may follow an operation's keyword.
func flagsOf(op Op) Flags {
	switch op {
	case OpAdd, OpSub, OpMul, OpShl, OpTrunc:
		return NSW | NUW
	case OpUDiv, OpSDiv, OpLShr, OpAShr:
		return Exact
	case OpOr:
		return Disjoint
	case OpZExt:
		return NNeg
	case OpUIToFP:
		return NNeg | fastMath
	case OpSIToFP, OpFPToUI, OpFPToSI, OpFPTrunc, OpFPExt, OpFNeg, OpFCmp, OpPhi, OpSelect, OpCall, OpInvoke, OpCallBr:
		return fastMath
	case OpICmp:
		return SameSign
	case OpGEP:
		return InBounds | NUW | NUSW
	}
	if op.FloatBinary() {
		return fastMath
	}
	return 0
}

// parseFlags parses the flags that may follow op.
func (p *constParser) parseFlags(op Op) Flags {
	allowed := flagsOf(op)
	var flags Flags
	for p.tok.kind == tokWord {
		f := flagWords[p.tok.text]
		switch {
		case f != 0 && f&^allowed == 0:
			flags |= f
			p.next()
		case op == OpGEP && p.isWord("inrange"): // inrange(-8, 8) (LLVM 19)
			p.next()
			if !p.isPunct('(') {
				p.fail(p.tok.pos, "expected '(' after inrange")
			}
			p.skipBalanced()
		case op == OpCall, op == OpInvoke, op == OpCallBr: // the word may be a calling convention
			return flags
		default:
			if !p.skipUnknownFlag(op) {
				return flags
			}
		}
	}
	return flags
}

// skipUnknownFlag skips a word that may be an unknown flag of op.
func (p *constParser) skipUnknownFlag(op Op) bool {
	predicates := intPredicates
	switch op {
	case OpFCmp:
		predicates = floatPredicates
		fallthrough
	case OpICmp:
		if predicates[p.tok.text] {
			return false
		}
		return p.skipUnknown("flag", func() bool {
			typed, found := p.ahead(func(word string) bool { return predicates[word] })
			return typed && found
		})
	}
	return p.skipUnknown("flag", p.typeAhead)
}

var (
	intPredicates   = words(`eq ne ugt uge ult ule sgt sge slt sle`)
	floatPredicates = words(`false oeq ogt oge olt ole one ord ueq ugt uge ult ule une uno true`)
)

func (p *constParser) predicate(op Op) string {
	set := intPredicates
	if op == OpFCmp {
		set = floatPredicates
	}
	word := p.tok.text
	if p.tok.kind != tokWord || !set[word] {
		p.fail(p.tok.pos, "expected a predicate of %v", op)
		return ""
	}
	p.next()
	return word
}

// parseInstr parses one instruction of block.
func (p *bodyParser) parseInstr(block *Block) *Instr {
	start := p.tok
	in := &Instr{Typ: Void, Block: block, Line: start.line, Pos: start.pos, Index: len(block.Instrs)}
	if start.kind == tokLocal {
		in.Name = start.text
		p.next()
		p.expect('=', "after the name of an instruction")
	}
	op := p.tok
	word := op.text
	if op.kind != tokWord {
		p.fail(op.pos, "expected instruction opcode: the block has no terminator yet")
		return in
	}
	switch {
	case word == "tail", word == "musttail", word == "notail":
		in.Op = OpCall
	default:
		known := false
		if in.Op, known = opOf[word]; !known {
			p.fail(op.pos, "expected instruction opcode, not '%s'", word)
			return in
		}
		p.next()
	}
	if in.Op == OpPhi && in.Index > 0 && block.Instrs[in.Index-1].Op != OpPhi {
		p.fail(op.pos, "phi nodes must come first in their block")
	}
	p.parseOp(op.pos, in)
	for p.err == nil && p.accept(',') {
		if p.tok.kind != tokMetadata {
			p.fail(p.tok.pos, "expected metadata after comma")
			break
		}
		p.skipAttachment(&in.debug)
	}
	if p.err != nil {
		return in
	}
	if in.Typ.Kind == VoidKind {
		if in.Name != "" {
			p.fail(start.pos, "instructions returning void cannot have a name")
		}
	} else {
		in.Name = p.numbered(start.pos, in.Name, &p.nextLocal)
		in = p.defineInstr(start.pos, in)
	}
	block.Instrs = append(block.Instrs, in)
	return in
}

func (p *bodyParser) parseOp(pos int, in *Instr) {
	op := in.Op
	switch {
	case op == OpCall, op == OpInvoke, op == OpCallBr:
		p.parseCall(in)
	case op == OpCleanupRet, op == OpCatchRet, op == OpCatchSwitch, op == OpCleanupPad, op == OpCatchPad:
		p.parseFunclet(in)
	case op.Terminator():
		p.parseTerminator(in)
	case op.Cast():
		in.Flags = p.parseFlags(op)
		in.Args = []Value{p.parseTyped()}
		p.expectWord("to")
		in.Typ = p.parseValueType()
		p.checkCast(pos, op, in.Args[0].Type(), in.Typ)
	case op.Binary(), op == OpICmp, op == OpFCmp:
		in.Flags = p.parseFlags(op)
		if !op.Binary() {
			in.Pred = p.predicate(op)
		}
		a := p.parseTyped()
		p.expect(',', "between operands")
		in.Args = []Value{a, p.parseOperand(a.Type())}
		in.Typ = p.resultType(pos, op, in.Args)
	case op >= OpAlloca && op <= OpAtomicRMW:
		p.parseMemory(pos, in)
	default:
		p.parseOther(pos, in)
	}
}

// parseOperands parses n typed operands separated by commas.
func (p *operandParser) parseOperands(n int) []Value {
	args := []Value{p.parseTyped()}
	for len(args) < n {
		p.expect(',', "between operands")
		args = append(args, p.parseTyped())
	}
	return args
}

func (p *bodyParser) parseOther(pos int, in *Instr) {
	switch in.Op {
	case OpFNeg, OpSelect, OpFreeze, OpExtractElement, OpInsertElement:
		in.Flags = p.parseFlags(in.Op)
		in.Args = p.parseOperands(operandCount(in.Op))
		in.Typ = p.resultType(pos, in.Op, in.Args)
	case OpShuffleVector:
		in.Args = p.parseOperands(3)
		in.Typ = p.shuffleType(pos, in.Args)
		mask, ok := in.Args[2].(*Const)
		if !ok {
			p.fail(pos, "shuffle mask must be constant")
			return
		}
		in.Path = p.shuffleMask(pos, mask)
		in.Args = in.Args[:2]
	case OpExtractValue, OpInsertValue:
		in.Args = p.parseOperands(operandCount(in.Op))
		p.expect(',', "before the index")
		in.Path = p.parsePath()
		in.Typ = p.pathType(pos, in.Args, in.Path)
	case OpVAArg:
		in.Args = []Value{p.parseTyped()}
		p.expect(',', "after va_arg operand")
		in.Typ = p.parseValueType()
		if !isPointer(in.Args[0].Type()) {
			p.fail(pos, "va_arg operand must be a pointer")
		}
	case OpPhi:
		p.parsePhi(in)
	case OpLandingPad:
		in.Typ = p.parseValueType()
		if p.acceptWord("cleanup") {
			in.Flags |= Cleanup
		}
		for p.acceptWord("catch") || p.acceptWord("filter") {
			in.Args = append(in.Args, p.parseTyped())
		}
	}
}

func (p *bodyParser) parsePhi(in *Instr) {
	in.Flags = p.parseFlags(OpPhi)
	pos := p.tok.pos
	in.Typ = p.parseValueType()
	if in.Typ.Kind == LabelKind || in.Typ.Kind == MetadataKind {
		p.fail(pos, "phi node must have first class type, not '%v'", in.Typ)
	}
	if !p.isPunct('[') {
		return // no operands: the block has no predecessors
	}
	for p.err == nil {
		p.expect('[', "in phi")
		in.Args = append(in.Args, p.parseOperand(in.Typ))
		p.expect(',', "in phi")
		in.Blocks = append(in.Blocks, p.blockRef())
		p.expect(']', "in phi")
		if !p.more() {
			return
		}
	}
}

func (p *bodyParser) parseTerminator(in *Instr) {
	pos := p.tok.pos
	switch in.Op {
	case OpRet:
		p.parseRet(in)
	case OpBr:
		if p.isWord("label") {
			in.Blocks = []*Block{p.labelRef()}
			return
		}
		cond := p.parseTyped()
		if !cond.Type().Equal(I1) {
			p.fail(pos, "branch condition must have 'i1' type, not '%v'", cond.Type())
		}
		in.Args = []Value{cond}
		p.expect(',', "after branch condition")
		yes := p.labelRef()
		p.expect(',', "after true destination")
		in.Blocks = []*Block{yes, p.labelRef()}
	case OpSwitch:
		p.parseSwitch(in)
	case OpIndirectBr:
		in.Args = []Value{p.parseTyped()}
		if !isPointer(in.Args[0].Type()) {
			p.fail(pos, "indirectbr address must have pointer type, not '%v'", in.Args[0].Type())
		}
		p.expect(',', "after indirectbr address")
		p.expect('[', "in indirectbr")
		for p.err == nil && !p.accept(']') {
			in.Blocks = append(in.Blocks, p.labelRef())
			if !p.accept(',') && !p.isPunct(']') {
				p.fail(p.tok.pos, "expected ']' at end of block list")
			}
		}
	case OpResume:
		in.Args = []Value{p.parseTyped()}
	case OpUnreachable:
	}
}

func (p *bodyParser) parseRet(in *Instr) {
	want := p.fn.Sig.Elem
	pos := p.tok.pos
	t := p.parseType()
	if !t.Equal(want) {
		p.fail(pos, "value doesn't match function result type '%v'", want)
		return
	}
	if t.Kind != VoidKind {
		in.Args = []Value{p.parseOperand(t)}
	}
}

func (p *bodyParser) parseSwitch(in *Instr) {
	pos := p.tok.pos
	cond := p.parseTyped()
	t := cond.Type()
	if !isInt(t) {
		p.fail(pos, "switch condition must have integer type, not '%v'", t)
	}
	in.Args = []Value{cond}
	p.expect(',', "after switch condition")
	in.Blocks = []*Block{p.labelRef()}
	p.expect('[', "in switch")
	seen := map[string]bool{}
	for p.err == nil && !p.accept(']') {
		pos := p.tok.pos
		c := p.parseTypedConst()
		p.expect(',', "after case value")
		to := p.labelRef()
		if p.err != nil {
			return
		}
		var value *big.Int
		switch {
		case !c.Typ.Equal(t):
			p.fail(pos, "case value has type '%v', not '%v'", c.Typ, t)
		case c.Kind == ConstInt:
			value = c.Int
		case c.Kind == ConstZero:
			value = new(big.Int)
		default:
			p.fail(pos, "case value is not a constant integer")
		}
		if p.err != nil {
			return
		}
		key := string(value.Bytes())
		if seen[key] {
			p.fail(pos, "duplicate case value in switch")
		}
		seen[key] = true
		in.Cases = append(in.Cases, value)
		in.Blocks = append(in.Blocks, to)
	}
}
