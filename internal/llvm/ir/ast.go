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
	Name  string // path or name of its source, for messages
	Found bool   // the user did not name the file itself, for example only its folder; the target may run another module
	// Image is the image that contains both the code and this module; nil for a module from a file.
	Image      any
	Layout     *DataLayout
	Triple     string
	TypeNames  map[string]*Type // named structs, without the % sign
	Globals    []*Global
	Funcs      []*Func
	Aliases    []*Alias
	globalsMap map[string]Value // *Global, *Func, *Alias by name, without the @ sign

	src        string
	mu         sync.Mutex // held while a body is parsed, because bodies share the fields below
	lines      []int      // offsets of the lines; nil until needed
	types      typeTable
	attrGroups map[string]*attrGroup // attribute groups by their number N, written #N
	attrs      map[ParamAttrs]*ParamAttrs
	typed      bool                  // pointers are written with their pointee type
	opaque     bool                  // read all pointers as ptr, because the module mixes both spellings
	implicit   map[implicitKey]*Func // intrinsics that are called without a declaration
	splats     uint64                // elements of all splat constants so far
	addresses  []blockAddress        // uses of blockaddress outside bodies
	metadata   lazyMetadata
	unknown    unknowns
}

// Value is an operand of an instruction: *Const, *Param, *Instr, *Global, *Func, *Alias, *Block, *Metadata or *InlineAsm.
type Value interface {
	Type() *Type
	// Ref returns the value as it is written as an operand: %x, @g, 42, null, undef.
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
	value  *Type // type of the target
}

// Func is a function. Its body is parsed on first use.
type Func struct {
	Name    string // without the @ sign
	Sig     *Type  // the function's type, of kind FuncKind
	Params  []*Param
	Ret     *ParamAttrs // attributes of the result; equal attributes share one copy
	CC      string      // "", fastcc, coldcc, "cc 10"...
	Linkage string
	GC      string // name of the garbage collector, or ""
	Line    int
	Module  *Module

	typ     *Type
	space   int  // address space
	nextID  int  // number of the first unnamed value after the parameters
	debug   span // position of its !dbg node in the module's source
	body    extent
	lazy    atomic.Pointer[lazyFunc]
	pure    bool              // an attribute outside of groups states that it stores nothing
	naked   bool              // an attribute outside of groups states that it has no frame
	ordered bool              // its body has uselistorder
	groups  []string          // numbers of its attribute groups
	strings map[string]string // its own string attributes
}

// Declared reports whether the module has no body for the function.
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

// StringAttribute returns the value of a string attribute of the function ("key"="value"), or "" if it has none.
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

// HasStringAttribute reports whether the function has a string attribute, with or without a value.
func (f *Func) HasStringAttribute(key string) bool {
	if _, ok := f.strings[key]; ok {
		return true
	}
	return slices.ContainsFunc(f.groups, func(id string) bool {
		g := f.Module.attrGroups[id]
		if g == nil {
			return false
		}
		_, ok := g.strings[key]
		return ok
	})
}

// OrdersUses reports whether the body, which must be parsed, gives an order of uses (LangRef, "Use-list Order Directives"). An additional use of a value
// makes that order invalid.
func (f *Func) OrdersUses() bool { return f.ordered }

// Param is one parameter of a function.
type Param struct {
	Name  string // without the % sign; "0", "1" ... if unnamed
	Typ   *Type
	Attrs *ParamAttrs // equal attributes share one copy
	Index int
}

// ParamAttrs holds the attributes of a parameter, an argument or a result that change how it is passed (LangRef, "Parameter Attributes").
type ParamAttrs struct {
	ByVal, SRet, InAlloca, Preallocated *Type // the type of the memory passed, or nil

	SignExt, SwiftError bool
	// Apart reports whether a special rule places the argument: nest, inreg, swiftself, swiftasync or swifterror.
	Apart bool

	Align           int    // bytes; 0 if absent
	Dereferenceable uint64 // bytes; 0 if absent
}

// InMemory reports whether the argument is passed in memory and takes no register.
func (a ParamAttrs) InMemory() bool {
	return a.ByVal != nil || a.InAlloca != nil || a.Preallocated != nil
}

// Block is a basic block.
type Block struct {
	Name   string // without the % sign
	Instrs []*Instr
	Func   *Func
	Line   int
	Index  int // index in the function

	records []record // debug records in the order of the source
}

// Instr is one instruction. Op determines which fields are used; their comments name the operations.
type Instr struct {
	Op   Op
	Name string // name of the result, without the % sign; "" if the result is void
	Typ  *Type  // type of the result
	// Args holds the operands in the order in which LLVM writes them, except for those that have their own field. alloca: the count, if present; load:
	// pointer; store: value, pointer; getelementptr: base, indices; cmpxchg: pointer, compared, new; atomicrmw: pointer, value; select: condition, true,
	// false; br, switch, indirectbr: the condition or address, if any; ret: the value, if any; landingpad: the clauses; call, invoke, callbr: the arguments;
	// catchswitch, catchpad, cleanuppad: the enclosing pad, arguments; catchret, cleanupret: the pad that is left.
	Args   []Value
	Elem   *Type      // load, store: type accessed; getelementptr: source element; alloca: type allocated
	Pred   string     // icmp, fcmp: the predicate; atomicrmw: the operation
	Flags  Flags      // nsw, nuw, exact, inbounds, ...
	Align  int        // alloca, load, store, cmpxchg, atomicrmw: the written alignment, or 0
	Blocks []*Block   // br, switch, indirectbr: targets; phi: incoming blocks, parallel to Args; invoke: normal, unwind; callbr: fallthrough, indirect targets; catchswitch: handlers, unwind; catchret, cleanupret: the next block
	Cases  []*big.Int // switch: case k goes to Blocks[k+1]; Blocks[0] is the default
	Path   []int      // extractvalue, insertvalue: indices; shufflevector: mask, -1 for poison
	Call   *Call      // call, invoke, callbr
	Block  *Block
	Index  int // index in the block
	Line   int
	Pos    int // offset of its first byte in the module's text

	debug span // position of its !dbg node in the module's source
}

// Call holds the fields that only calls use.
type Call struct {
	Callee     Value
	Sig        *Type // the called function's type
	CC         string
	Tail       string     // "", tail, musttail, notail
	Ret        ParamAttrs // attributes of the result
	ArgAttrs   []ParamAttrs
	ElemTypes  []*Type // type of elementtype(…) for each argument, or nil
	Bundles    []Bundle
	BundlesAt  int               // offset in the module's text at which bundles are or could be inserted: the first byte after the attributes
	Attrs      map[string]string // string attributes of the call: "statepoint-id"="7"
	Pure       bool              // an attribute of the call states that it stores nothing
	ArgsMemory bool              // an attribute of the call states that it accesses only memory that its arguments point to
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
	ConstInt   ConstKind = iota // an integer: Int holds its value
	ConstFloat                  // a floating-point number: Int holds the bits in the type's format
	ConstNull
	ConstUndef
	ConstPoison
	ConstZero      // zeroinitializer of any type
	ConstAggregate // a struct, array or vector: Elems holds its elements
	ConstBytes     // c"…": Bytes holds the text
	ConstExpr      // the operation Op on Elems
	ConstRef       // Target: a global, function or alias
	ConstBlockAddr // Target is the *Func, Block the name of its block
	ConstToken     // the token none
	ConstSplat     // splat of a scalable vector: each element is Elems[0]
	ConstPtrAuth   // ptrauth: Elems are the pointer, the key, and optionally the discriminator and its address
)

// Const is a constant.
type Const struct {
	Kind   ConstKind
	Typ    *Type
	Int    *big.Int // ConstInt: the two's complement value, reduced to the width, not negative; ConstFloat: the bits
	Elems  []*Const // ConstAggregate, ConstExpr, ConstSplat, ConstPtrAuth
	Bytes  []byte
	Op     Op     // ConstExpr: getelementptr, bitcast, inttoptr, add, ...
	Source *Type  // source element type of a ConstExpr getelementptr
	Pred   string // predicate of a ConstExpr icmp or fcmp (before LLVM 19)
	Flags  Flags
	Path   []int // indices of a ConstExpr shufflevector, extractvalue or insertvalue
	Target Value
	Block  string
}

// Metadata is an operand of type metadata. Its content is not parsed.
type Metadata struct {
	Text string
	at   span // position in the module's source
}

// InlineAsm is a callee that is inline assembly (LangRef, "Inline Assembler Expressions").
type InlineAsm struct{ Text, Constraints string }

// Empty reports whether the assembly has no instructions. Such assembly only keeps the compiler from moving code across it, or hides a value from
// optimizations.
func (a *InlineAsm) Empty() bool { return strings.TrimSpace(a.Text) == "" }

// Flags holds the flags of an instruction.
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
	NUSW       // flag of getelementptr; implied by inbounds
	Cleanup    // flag of landingpad
	InAlloca   // flag of alloca
	SwiftError // flag of alloca
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
