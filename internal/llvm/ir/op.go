package ir

// Op is the operation of an instruction or a constant expression.
type Op uint8

// These are the operations that this package supports, within each group in the order of LLVM's Instruction.def.
const (
	OpNone Op = iota

	// Terminators.
	OpRet
	OpBr
	OpSwitch
	OpIndirectBr
	OpInvoke
	OpResume
	OpUnreachable
	OpCleanupRet
	OpCatchRet
	OpCatchSwitch
	OpCallBr

	// Arithmetic on one and on two operands.
	OpFNeg
	OpAdd
	OpFAdd
	OpSub
	OpFSub
	OpMul
	OpFMul
	OpUDiv
	OpSDiv
	OpFDiv
	OpURem
	OpSRem
	OpFRem
	OpShl
	OpLShr
	OpAShr
	OpAnd
	OpOr
	OpXor

	// Memory.
	OpAlloca
	OpLoad
	OpStore
	OpGEP
	OpFence
	OpCmpXchg
	OpAtomicRMW

	// Conversions.
	OpTrunc
	OpZExt
	OpSExt
	OpFPToUI
	OpFPToSI
	OpUIToFP
	OpSIToFP
	OpFPTrunc
	OpFPExt
	OpPtrToInt
	OpPtrToAddr
	OpIntToPtr
	OpBitCast
	OpAddrSpaceCast

	// Other operations.
	OpICmp
	OpFCmp
	OpPhi
	OpCall
	OpSelect
	OpVAArg
	OpExtractElement
	OpInsertElement
	OpShuffleVector
	OpExtractValue
	OpInsertValue
	OpLandingPad
	OpFreeze
	OpCleanupPad
	OpCatchPad
)

// opNames holds the keywords of the operations.
var opNames = [...]string{
	OpNone: "none",
	OpRet:  "ret", OpBr: "br", OpSwitch: "switch", OpIndirectBr: "indirectbr", OpInvoke: "invoke",
	OpResume: "resume", OpUnreachable: "unreachable",
	OpCleanupRet: "cleanupret", OpCatchRet: "catchret", OpCatchSwitch: "catchswitch", OpCallBr: "callbr",
	OpFNeg: "fneg", OpAdd: "add", OpFAdd: "fadd", OpSub: "sub", OpFSub: "fsub", OpMul: "mul", OpFMul: "fmul",
	OpUDiv: "udiv", OpSDiv: "sdiv", OpFDiv: "fdiv", OpURem: "urem", OpSRem: "srem", OpFRem: "frem",
	OpShl: "shl", OpLShr: "lshr", OpAShr: "ashr", OpAnd: "and", OpOr: "or", OpXor: "xor",
	OpAlloca: "alloca", OpLoad: "load", OpStore: "store", OpGEP: "getelementptr", OpFence: "fence",
	OpCmpXchg: "cmpxchg", OpAtomicRMW: "atomicrmw",
	OpTrunc: "trunc", OpZExt: "zext", OpSExt: "sext", OpFPToUI: "fptoui", OpFPToSI: "fptosi",
	OpUIToFP: "uitofp", OpSIToFP: "sitofp", OpFPTrunc: "fptrunc", OpFPExt: "fpext",
	OpPtrToInt: "ptrtoint", OpPtrToAddr: "ptrtoaddr", OpIntToPtr: "inttoptr", OpBitCast: "bitcast",
	OpAddrSpaceCast: "addrspacecast",
	OpICmp:          "icmp", OpFCmp: "fcmp", OpPhi: "phi", OpCall: "call", OpSelect: "select", OpVAArg: "va_arg",
	OpExtractElement: "extractelement", OpInsertElement: "insertelement", OpShuffleVector: "shufflevector",
	OpExtractValue: "extractvalue", OpInsertValue: "insertvalue", OpLandingPad: "landingpad", OpFreeze: "freeze",
	OpCleanupPad: "cleanuppad", OpCatchPad: "catchpad",
}

var opOf = func() map[string]Op {
	m := make(map[string]Op, len(opNames))
	for op, name := range opNames {
		if Op(op) != OpNone {
			m[name] = Op(op)
		}
	}
	return m
}()

// String returns the keyword of the operation.
func (o Op) String() string {
	if int(o) < len(opNames) {
		return opNames[o]
	}
	return "unknown operation"
}

// Terminator reports whether the operation ends a block.
func (o Op) Terminator() bool { return OpRet <= o && o <= OpCallBr }

// Binary reports whether the operation is arithmetic on two operands of one type.
func (o Op) Binary() bool { return OpAdd <= o && o <= OpXor }

// FloatBinary reports whether the operation is arithmetic on two floats.
func (o Op) FloatBinary() bool {
	switch o {
	case OpFAdd, OpFSub, OpFMul, OpFDiv, OpFRem:
		return true
	}
	return false
}

// Cast reports whether the operation converts one operand to another type.
func (o Op) Cast() bool { return OpTrunc <= o && o <= OpAddrSpaceCast }
