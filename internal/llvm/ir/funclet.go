package ir

// parseFunclet parses an instruction of funclet-based exception handling (LangRef, "Exception Handling in LLVM"), as used on Windows:
//
//	%t = catchswitch within %parent [label %handler, ...] unwind to caller
//	%t = catchpad within %catchswitch [T value, ...]
//	%t = cleanuppad within %parent [T value, ...]
//	catchret from %catchpad to label %b
//	cleanupret from %cleanuppad unwind label %b
func (p *bodyParser) parseFunclet(in *Instr) {
	switch in.Op {
	case OpCatchSwitch:
		in.Typ = tokenType
		p.parsePad(in, "within")
		p.expect('[', "before the handlers")
		for p.err == nil {
			in.Blocks = append(in.Blocks, p.labelRef())
			if !p.accept(',') {
				break
			}
		}
		p.expect(']', "behind the handlers")
		p.parseUnwind(in)
	case OpCatchPad, OpCleanupPad:
		in.Typ = tokenType
		p.parsePad(in, "within")
		p.expect('[', "before the arguments")
		for p.err == nil && !p.accept(']') {
			in.Args = append(in.Args, p.parseOperand(p.parseValueType()))
			if !p.accept(',') && !p.isPunct(']') {
				p.fail(p.tok.pos, "expected ']' at end of arguments")
			}
		}
	case OpCatchRet:
		p.parsePad(in, "from")
		p.expectWord("to")
		in.Blocks = []*Block{p.labelRef()}
	case OpCleanupRet:
		p.parsePad(in, "from")
		p.parseUnwind(in)
	}
}

// parsePad parses the token of the enclosing pad, or none.
func (p *bodyParser) parsePad(in *Instr, word string) {
	p.expectWord(word)
	in.Args = []Value{p.parseOperand(tokenType)}
}

// parseUnwind parses the unwind destination.
func (p *bodyParser) parseUnwind(in *Instr) {
	p.expectWord("unwind")
	if p.acceptWord("to") {
		p.expectWord("caller")
		return
	}
	in.Blocks = append(in.Blocks, p.labelRef())
}
