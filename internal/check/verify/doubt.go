package verify

// kept is the reason why a difference may not be an error.
const kept = "a callee has kept a pointer to what the interpreter has elsewhere"

// undecided withdraws a difference that a pointer kept by native code, or a store of another process, may have caused.
func (p *prediction) undecided(v *verifier) {
	why := ""
	switch {
	case p.out.Status != Different:
		return
	case p.pairs.mixed(p.interp.machine):
		why = kept
	case p.readsShared(v):
		why = sharedMemory
	default:
		if why = p.several(v); why == "" {
			return
		}
	}
	p.out.Call, p.out.Result, p.out.Memory, p.out.Words = nil, nil, nil, 0
	p.out.Native.Failed, p.out.Interpreter.Failed = "", ""
	p.out.notComparable(why)
}
