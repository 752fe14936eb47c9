package interp

// cxxFuncs holds the functions of the C++ runtime other than exceptions: memory (ISO C++17 21.6.2, by their names in the Itanium C++ ABI 5.1) and
// the guards of static variables (Itanium C++ ABI 3.3.3).
var cxxFuncs = cxxTable()

func cxxTable() map[string]Builtin {
	table := map[string]Builtin{
		// The first byte of a guard is set once its variable is initialized.
		"__cxa_guard_acquire": scalar(func(c cxxCall) uint64 { return truth(c.get(c.addr(0), 1) == 0) }),
		"__cxa_guard_release": procedure(func(c cxxCall) { c.put(c.addr(0), 1, 1) }),
		"__cxa_guard_abort":   procedure(func(*ccall) {}),
		"__cxa_pure_virtual":  procedure(func(c cxxCall) { c.pureVirtual() }),
	}
	for _, operator := range []string{"_Znwm", "_Znam", "_Znwj", "_Znaj"} { // new and new[], for a size_t of 64 or 32 bits
		table[operator] = scalar(func(c cxxCall) uint64 { return c.created(heapCall(c).allocate(c.uint(0), 16, false)) })
		table[operator+"St11align_val_t"] = scalar(func(c cxxCall) uint64 { return c.created(heapCall(c).allocateAligned(c.uint(1), c.uint(0))) })
		table[operator+"RKSt9nothrow_t"] = scalar(func(c cxxCall) uint64 { return heapCall(c).allocate(c.uint(0), 16, false) })
		table[operator+"St11align_val_tRKSt9nothrow_t"] = scalar(func(c cxxCall) uint64 { return heapCall(c).allocateAligned(c.uint(1), c.uint(0)) })
	}
	for _, operator := range []string{"_ZdlPv", "_ZdaPv"} { // delete, delete[]
		for _, also := range []string{"", "m", "j", "St11align_val_t", "mSt11align_val_t", "jSt11align_val_t", "RKSt9nothrow_t", "St11align_val_tRKSt9nothrow_t"} {
			table[operator+also] = procedure(func(c cxxCall) { heapCall(c).free(c.addr(0)) })
		}
	}
	// The constructors and destructors of std::allocator<char> and <wchar_t> do nothing. libstdc++ exports them as functions.
	for _, class := range []string{"_ZNSaIc", "_ZNSaIw"} {
		for _, member := range []string{"C1Ev", "C2Ev", "C1ERKS_", "C2ERKS_", "D1Ev", "D2Ev"} {
			table[class+"E"+member] = procedure(func(*ccall) {})
		}
	}
	// Names of new and new[] that Microsoft's C++ uses for 32-bit x86.
	for _, operator := range []string{"??2@YAPAXI@Z", "??_U@YAPAXI@Z"} {
		table[operator] = table["_Znwj"]
	}
	for _, operator := range []string{"??3@YAXPAX@Z", "??3@YAXPAXI@Z", "??_V@YAXPAX@Z", "??_V@YAXPAXI@Z"} {
		table[operator] = table["_ZdlPv"]
	}
	return table
}

// created returns the result of operator new. It throws bad_alloc instead of returning a null pointer.
func (c cxxCall) created(a uint64) uint64 {
	if c.err == nil && a == 0 {
		f, err := c.in.runtimeAddr("_ZSt17__throw_bad_allocv")
		c.fail(err)
		c.run(f)
	}
	return a
}

func (c cxxCall) pureVirtual() {
	c.printError([]byte("pure virtual method called\nterminate called without an active exception\n"))
	c.fail(troublef(KindAbort, "a pure virtual function was called"))
}
