package ir

import (
	"math/big"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
)

// Module is one parsed .ll file.
type Module struct {
	Name  string // the path or name it was parsed from, for messages
	Found bool   // the user did not name the file, for example it was in a folder; the target may run another module
	// Image is the image of code that has the module in it, as its own, and nil for one in a file.
	Image      any
	Layout     *DataLayout
	Triple     string
	TypeNames  map[string]*Type // named structs, without the % sign
	Globals    []*Global
	Funcs      []*Func
	Aliases    []*Alias
	globalsMap map[string]Value // *Global, *Func, *Alias by name, without the @ sign

	src        string
	mu         sync.Mutex // held while a body is parsed: bodies share what follows
	lines      []int      // where each line starts, once asked for
	types      typeTable
	attrGroups map[string]*attrGroup // by N of group #N
	attrs      map[ParamAttrs]*ParamAttrs
	typed      bool                  // pointers are written with what they point to
	opaque     bool                  // pointers are spelled in both ways, and each is read as ptr
	implicit   map[implicitKey]*Func // intrinsics that are called without a declaration
	splats     uint64                // elements of all splat constants so far
	addresses  []blockAddress        // uses of blockaddress outside bodies
	metadata   lazyMetadata
	unknown    unknowns
}

// Value is an operand of an instruction: *Const, *Param, *Instr, *Global, *Func, *Alias, *Block, *Metadata or *InlineAsm.
type Value interface {
	Type() *Type
	// Ref is the value as an operand is written: %x, @g, 42, null, undef.
	Ref() string
}

// Global is a global variable. As an operand it is a pointer.
type Global struct {
	Name      string // without the @ sign
	ValueType *Type
	Constant  bool
	Linkage   string // "" external, private, internal, ...
	External  bool   // declared here, defined elsewhere
	Init      *Const // nil when External
	Align     int
	AddrSpace int
	Module    *Module
	typ       *Type
}

// Alias is another name for a global or function.
type Alias struct {
	Name   string
	Target *Const // a constant expression or a reference
	IFunc  bool
	Module *Module
	typ    *Type
	value  *Type // of what it names
}

// Func is a function. Its body is parsed when it is first asked for.
type Func struct {
	Name    string // without the @ sign
	Sig     *Type  // FuncKind
	Params  []*Param
	Ret     *ParamAttrs // of the result; values that are alike are one
	CC      string      // "", fastcc, coldcc, "cc 10"...
	Linkage string
	GC      string // the collector's name, or ""
	Line    int
	Module  *Module

	typ     *Type
	space   int  // address space
	nextID  int  // the first number that the parameters leave to blocks and instructions
	debug   span // of its !dbg, in the module's source
	body    extent
	lazy    atomic.Pointer[lazyFunc]
	pure    bool              // by an attribute of its own
	naked   bool              // alike
	ordered bool              // its body has uselistorder
	groups  []string          // of attributes
	strings map[string]string // attributes of its own
}

// Declared reports whether the function has no body here.
func (f *Func) Declared() bool { return !f.body.present }

// StoresNothing reports whether calls of the function change no memory, so that a compiler may drop one or merge two (LangRef, "Function Attributes",
// memory, readnone, readonly).
func (f *Func) StoresNothing() bool {
	return f.pure || slices.ContainsFunc(f.groups, func(id string) bool {
		g := f.Module.attrGroups[id]
		return g != nil && g.pure
	})
}

// Naked reports whether the function has no frame: its body is assembly that returns by itself (LangRef, "Function Attributes").
func (f *Func) Naked() bool {
	return f.naked || slices.ContainsFunc(f.groups, func(id string) bool {
		g := f.Module.attrGroups[id]
		return g != nil && g.naked
	})
}

// StringAttribute returns the value of a string attribute of the function ("key"="value"), "" where it has none.
func (f *Func) StringAttribute(key string) string {
	if v, ok := f.strings[key]; ok {
		return v
	}
	for _, id := range f.groups {
		if g := f.Module.attrGroups[id]; g != nil && g.strings[key] != "" {
			return g.strings[key]
		}
	}
	return ""
}

// OrdersUses reports whether the body, which was asked for, says in which order values are used (LangRef, "Use-list Order Directives"): what
// uses one more makes it wrong.
func (f *Func) OrdersUses() bool { return f.ordered }

// Param is one parameter of a function.
type Param struct {
	Name  string // without the % sign; "0", "1" ... where the source gives none
	Typ   *Type
	Attrs *ParamAttrs // values that are alike are one
	Index int
}

// ParamAttrs are the attributes of a parameter, an argument or a result that change
// what it means (LangRef, "Parameter Attributes"). Those that make poison of what
// breaks them are Align, NonNull and Range; with NoUndef, that is undefined behavior.
type ParamAttrs struct {
	ByVal, SRet, InAlloca, Preallocated, ByRef *Type // the type of the memory passed, or nil

	SignExt, ZeroExt, NoUndef, NonNull, SwiftError bool
	// Apart reports whether a rule of its own places the argument: nest, inreg, swiftself, swiftasync or swifterror.
	Apart bool

	Align           int    // bytes; 0 where none is written
	Dereferenceable uint64 // bytes; 0 where none are promised
	OrNull          uint64 // dereferenceable_or_null: bytes, unless the pointer is null
	Range           *Range
}

// InMemory reports whether the argument is passed in memory and takes no register.
func (a ParamAttrs) InMemory() bool {
	return a.ByVal != nil || a.InAlloca != nil || a.Preallocated != nil
}

// Range bounds the integers that a value may be: from Low up to, and without, High, wrapping around. The bounds have the form of those of a [Const]:
// reduced to the width, not negative.
type Range struct{ Low, High *big.Int }

// Block is a basic block.
type Block struct {
	Name   string // without the % sign
	Instrs []*Instr
	Func   *Func
	Line   int
	Index  int // in the function

	records []record // debug records, in the order of the source
}

// Instr is one instruction. Which fields are used depends on Op; the comments name them.
type Instr struct {
	Op   Op
	Name string // of its result, without the % sign; "" when the result is void
	Typ  *Type  // of its result
	// Args are the operands in the order in which LLVM writes them, without
	// what has a field of its own. alloca: the count, where one is written; load:
	// pointer; store: value, pointer; getelementptr: base, indices; cmpxchg:
	// pointer, compared, new; atomicrmw: pointer, value; select: condition, true,
	// false; br, switch, indirectbr: the condition or address, where there is one;
	// ret: the value, where there is one; landingpad: the clauses; call, invoke, callbr:
	// the arguments; catchswitch, catchpad, cleanuppad: the pad around them, arguments;
	// catchret, cleanupret: the pad that is left.
	Args   []Value
	Elem   *Type      // load, store: what is accessed; getelementptr: source element; alloca: what is allocated
	Pred   string     // icmp, fcmp: the predicate; atomicrmw: the operation
	Flags  Flags      // nsw, nuw, exact, inbounds, ...
	Align  int        // alloca, load, store, cmpxchg, atomicrmw: as written, else 0
	Blocks []*Block   // br, switch, indirectbr: targets; phi: incoming blocks, parallel to Args; invoke: normal, unwind; callbr: normal, those jumped to; catchswitch: handlers, unwind; catchret, cleanupret: where it goes on
	Cases  []*big.Int // switch: case k goes to Blocks[k+1]; Blocks[0] is the default
	Path   []int      // extractvalue, insertvalue: indices; shufflevector: mask, -1 for poison
	Call   *Call      // call, invoke, callbr
	Block  *Block
	Index  int // in the block
	Line   int
	Pos    int // of its first byte, in the module's text

	debug span // of its !dbg, in the module's source
}

// Call holds the fields that only calls have.
type Call struct {
	Callee    Value
	Sig       *Type // the function type that is called
	CC        string
	Tail      string     // "", tail, musttail, notail
	Ret       ParamAttrs // of the result
	ArgAttrs  []ParamAttrs
	ElemTypes []*Type // elementtype(…) of each argument, or nil
	Bundles   []Bundle
	BundlesAt int               // where they stand, or would stand, in the module's text: the first byte of what follows the attributes
	Attrs     map[string]string // string attributes at the call: "statepoint-id"="7"
	// Preallocated is the type that a call of llvm.call.preallocated.arg gives for the memory, or nil.
	Preallocated *Type
	Pure         bool // an attribute of the call says that it stores nothing
	ArgsMemory   bool // an attribute of the call says that it accesses only the memory that its arguments point to
}

// Bundle is an operand bundle of a call.
type Bundle struct {
	Tag  string
	Args []Value
}

// ConstKind is the kind of a constant.
type ConstKind uint8

// The kinds of constant.
const (
	ConstInt   ConstKind = iota // Int
	ConstFloat                  // Int holds the bits of the type's own format
	ConstNull
	ConstUndef
	ConstPoison
	ConstZero      // zeroinitializer of any type
	ConstAggregate // Elems
	ConstBytes     // Bytes, of c"…"
	ConstExpr      // Op over Elems
	ConstRef       // Target: a global, function or alias
	ConstBlockAddr // Target is the *Func, Block its block's name
	ConstToken     // none
	ConstSplat     // splat of a scalable vector: each element is Elems[0]
	ConstPtrAuth   // ptrauth: Elems are the pointer, the key, and perhaps the discriminator and its address
)

// Const is a constant.
type Const struct {
	Kind   ConstKind
	Typ    *Type
	Int    *big.Int // ConstInt: two's complement value as written, reduced to the width, not negative; ConstFloat: bits
	Elems  []*Const // ConstAggregate, ConstExpr, ConstSplat, ConstPtrAuth
	Bytes  []byte
	Op     Op     // ConstExpr: getelementptr, bitcast, inttoptr, add, ...
	Source *Type  // ConstExpr getelementptr: source element type
	Pred   string // ConstExpr icmp, fcmp (before LLVM 19)
	Flags  Flags
	Path   []int // ConstExpr shufflevector, extractvalue, insertvalue
	Target Value
	Block  string
}

// Metadata is an operand of type metadata; its content is not kept.
type Metadata struct {
	Text string
	at   span // of it, in the module's source
}

// InlineAsm is a callee that is inline assembly: its text and constraints (LangRef, "Inline Assembler Expressions").
type InlineAsm struct{ Text, Constraints string }

// Empty reports whether the assembly has no text: it is no instruction of the machine, and
// only keeps the compiler from moving code past it or from knowing a value.
func (a *InlineAsm) Empty() bool { return strings.TrimSpace(a.Text) == "" }

// Flags of an instruction.
type Flags uint32

// The flags.
const (
	NSW Flags = 1 << iota
	NUW
	Exact
	InBounds
	Disjoint
	NNeg
	SameSign
	NoNaNs
	NoInfs
	NoSignedZeros
	AllowReciprocal
	AllowContract
	ApproxFunc
	Reassoc
	Volatile
	Atomic
	NUSW       // getelementptr; inbounds includes it
	Cleanup    // landingpad
	InAlloca   // alloca
	SwiftError // alloca
)

// Type returns the type of the value.
func (g *Global) Type() *Type { return g.typ }

// Ref returns @name.
func (g *Global) Ref() string { return "@" + quoteName(g.Name) }

// Type returns the type of the value.
func (a *Alias) Type() *Type { return a.typ }

// Ref returns @name.
func (a *Alias) Ref() string { return "@" + quoteName(a.Name) }

// Type returns the type of the function as an operand: a pointer.
func (f *Func) Type() *Type { return f.typ }

// Ref returns @name.
func (f *Func) Ref() string { return "@" + quoteName(f.Name) }

// Type returns the type of the value.
func (p *Param) Type() *Type { return p.Typ }

// Ref returns %name.
func (p *Param) Ref() string { return "%" + quoteName(p.Name) }

// Type returns the type label.
func (b *Block) Type() *Type { return Label }

// Ref returns %name.
func (b *Block) Ref() string { return "%" + quoteName(b.Name) }

// Type returns the type of the instruction's result.
func (i *Instr) Type() *Type { return i.Typ }

// Ref returns %name.
func (i *Instr) Ref() string { return "%" + quoteName(i.Name) }

// Type returns the type of the constant.
func (c *Const) Type() *Type { return c.Typ }

// Type returns the type metadata.
func (m *Metadata) Type() *Type { return metadataType }

// Ref returns the text as written.
func (m *Metadata) Ref() string { return m.Text }

// Type returns ptr.
func (a *InlineAsm) Type() *Type { return Ptr }

// Ref returns asm and the text.
func (a *InlineAsm) Ref() string { return "asm " + a.Text }
