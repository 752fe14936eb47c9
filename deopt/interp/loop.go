package interp

import (
	"errors"
	"math"
)

// errHalted ends the loop where the run halts: before a block of [Execution.StopAt], at a number of steps or frames, or after a single step.
var errHalted = errors.New("halted")

// loop runs until base frames are left. It runs whole blocks if possible. It runs single instructions if the caller asks for that, or if the limits
// do not allow a whole block.
func (in *Interp) loop(base int) error {
	for in.frames.n > base {
		var err error
		if in.run.single {
			err = in.singly(base)
		} else {
			err = in.blocks(base)
		}
		if err != nil {
			if err = in.handle(base, err); err != nil {
				return err
			}
		}
	}
	return nil
}

// singly runs single instructions by their steps, without fast paths, until base frames are left.
func (in *Interp) singly(base int) error {
	for in.frames.n > base {
		if in.reachedHalt() {
			return errHalted
		}
		fr := in.top()
		if err := in.checkLimits(uint64(fr.fn.code[fr.pc].count)); err != nil {
			return in.located(err, false)
		}
		src := fr.fn.src[fr.pc]
		i := &fr.fn.code[fr.pc]
		fr.pc++
		in.run.steps += uint64(i.count)
		depth := in.frames.n
		if err := i.run(fr); err != nil {
			return in.located(err, true)
		}
		halt := in.run.once
		if in.run.entered {
			in.run.entered = false
			halt = halt || in.top().fn.blocks[0].stop
		}
		if in.opt.Trace != nil && i.count > 0 {
			in.traced(src, fr, depth)
		}
		if in.frames.n == depth && fr.next != nil {
			halt = in.enterBlock(fr) || halt
		}
		if halt && in.run.nested == 0 {
			return errHalted
		}
	}
	return nil
}

// enterBlock follows the edge that a terminator chose, and reports whether the run halts at the start of the block.
func (in *Interp) enterBlock(fr *frame) bool {
	e := fr.next
	fr.next = nil
	e.follow(fr)
	fr.pc = e.to.start
	e.to.runs++
	in.run.steps += uint64(e.to.phis)
	if in.opt.Trace != nil {
		for _, phi := range e.to.ir.Instrs[:e.to.phis] {
			in.traced(phi, fr, in.frames.n)
		}
	}
	return e.to.stop
}

// admit counts the remaining instructions of the running frame's block as steps. If the limits do not allow all of them, the run continues in single
// steps.
func (in *Interp) admit(fr *frame) error {
	i := &fr.fn.code[fr.pc]
	n := uint64(i.rest) + uint64(i.count)
	err := in.checkLimits(n)
	switch {
	case err == nil && (in.run.beyond(n) || in.frames.n < in.run.floor):
		in.run.single = true
	case err == nil:
		in.run.steps += n
	case kindOf(err) == KindSteps:
		in.run.single, err = true, nil
	default:
		err = in.located(err, false)
	}
	return err
}

// blocks runs until base frames are left, and checks the limits once per block. Each case of its switch is a fast path. A case that cannot compute
// its instruction leaves the switch, and the instruction's step runs.
func (in *Interp) blocks(base int) error {
	var (
		fr   = in.top()
		code = fr.fn.code
		w    = fr.w
		pc   = fr.pc
		view = &in.view
		e    *edge
	)
	if err := in.admit(fr); err != nil || in.run.single {
		return err
	}
	for {
		i := &code[pc]
		pc++
		switch i.op {
		case opMove:
			w[i.dst] = w[i.a]
			continue
		case opAdd:
			a, b := &w[i.a], &w[i.b]
			r := (a.v + b.v) & i.k
			if a.u|b.u|(a.v^r)&(b.v^r)&i.s == 0 {
				w[i.dst] = word{v: r}
				continue
			}
		case opAddNUW:
			a, b := &w[i.a], &w[i.b]
			r := (a.v + b.v) & i.k
			if a.u|b.u|(a.v^r)&(b.v^r)&i.s == 0 && r >= a.v {
				w[i.dst] = word{v: r}
				continue
			}
		case opSub:
			a, b := &w[i.a], &w[i.b]
			r := (a.v - b.v) & i.k
			if a.u|b.u|(a.v^b.v)&(a.v^r)&i.s == 0 {
				w[i.dst] = word{v: r}
				continue
			}
		case opSubNUW:
			a, b := &w[i.a], &w[i.b]
			r := (a.v - b.v) & i.k
			if a.u|b.u|(a.v^b.v)&(a.v^r)&i.s == 0 && a.v >= b.v {
				w[i.dst] = word{v: r}
				continue
			}
		case opMul:
			a, b := &w[i.a], &w[i.b]
			if a.u|b.u == 0 {
				w[i.dst] = word{v: a.v * b.v & i.k}
				continue
			}
		case opMulNSW:
			a, b := &w[i.a], &w[i.b]
			x, y := extended(a.v, i.cut), extended(b.v, i.cut)
			if a.u|b.u == 0 && small(x) && small(y) && extended(uint64(x*y), i.cut) == x*y {
				w[i.dst] = word{v: uint64(x*y) & i.k}
				continue
			}
		case opMulNUW:
			a, b := &w[i.a], &w[i.b]
			if a.u|b.u|(a.v|b.v)>>32|a.v*b.v&i.s == 0 {
				w[i.dst] = word{v: a.v * b.v}
				continue
			}
		case opUDiv:
			a, b := &w[i.a], &w[i.b]
			if a.u|b.u == 0 && b.v != 0 {
				w[i.dst] = word{v: a.v / b.v}
				continue
			}
		case opURem:
			a, b := &w[i.a], &w[i.b]
			if a.u|b.u == 0 && b.v != 0 {
				w[i.dst] = word{v: a.v % b.v}
				continue
			}
		case opSDiv:
			a, b := &w[i.a], &w[i.b]
			if y := extended(b.v, i.cut); a.u|b.u == 0 && uint64(y+1) > 1 { // the divisor is neither 0 nor -1
				w[i.dst] = word{v: uint64(extended(a.v, i.cut)/y) & i.k}
				continue
			}
		case opSRem:
			a, b := &w[i.a], &w[i.b]
			if y := extended(b.v, i.cut); a.u|b.u == 0 && uint64(y+1) > 1 {
				w[i.dst] = word{v: uint64(extended(a.v, i.cut)%y) & i.k}
				continue
			}
		case opAnd:
			a, b := &w[i.a], &w[i.b]
			if a.u|b.u == 0 {
				w[i.dst] = word{v: a.v & b.v}
				continue
			}
		case opOr:
			a, b := &w[i.a], &w[i.b]
			if a.u|b.u|a.v&b.v&i.s == 0 {
				w[i.dst] = word{v: a.v | b.v}
				continue
			}
		case opXor:
			a, b := &w[i.a], &w[i.b]
			if a.u|b.u == 0 {
				w[i.dst] = word{v: a.v ^ b.v}
				continue
			}
		case opShl:
			a, b := &w[i.a], &w[i.b]
			if a.u|b.u == 0 && b.v < i.s {
				w[i.dst] = word{v: a.v << (b.v & 63) & i.k}
				continue
			}
		case opShlNSW:
			a, b := &w[i.a], &w[i.b]
			r := a.v << (b.v & 63) & i.k
			if a.u|b.u == 0 && b.v < i.s && extended(r, i.cut)>>(b.v&63) == extended(a.v, i.cut) {
				w[i.dst] = word{v: r}
				continue
			}
		case opShlNUW:
			a, b := &w[i.a], &w[i.b]
			r := a.v << (b.v & 63) & i.k
			if a.u|b.u == 0 && b.v < i.s && r>>(b.v&63) == a.v {
				w[i.dst] = word{v: r}
				continue
			}
		case opShlBoth:
			a, b := &w[i.a], &w[i.b]
			r := a.v << (b.v & 63) & i.k
			if a.u|b.u == 0 && b.v < i.s && r>>(b.v&63) == a.v && extended(r, i.cut) >= 0 {
				w[i.dst] = word{v: r}
				continue
			}
		case opLShr:
			a, b := &w[i.a], &w[i.b]
			if a.u|b.u == 0 && b.v < i.s {
				w[i.dst] = word{v: a.v >> (b.v & 63)}
				continue
			}
		case opAShr:
			a, b := &w[i.a], &w[i.b]
			if a.u|b.u == 0 && b.v < i.s {
				w[i.dst] = word{v: uint64(extended(a.v, i.cut)>>(b.v&63)) & i.k}
				continue
			}
		case opEq:
			a, b := &w[i.a], &w[i.b]
			if a.u|b.u|(a.v^b.v)&i.s == 0 {
				w[i.dst] = bit(a.v == b.v)
				continue
			}
		case opNe:
			a, b := &w[i.a], &w[i.b]
			if a.u|b.u|(a.v^b.v)&i.s == 0 {
				w[i.dst] = bit(a.v != b.v)
				continue
			}
		case opULT:
			a, b := &w[i.a], &w[i.b]
			if a.u|b.u|(a.v^b.v)&i.s == 0 {
				w[i.dst] = bit(a.v < b.v)
				continue
			}
		case opULE:
			a, b := &w[i.a], &w[i.b]
			if a.u|b.u|(a.v^b.v)&i.s == 0 {
				w[i.dst] = bit(a.v <= b.v)
				continue
			}
		case opSLT:
			a, b := &w[i.a], &w[i.b]
			if a.u|b.u|(a.v^b.v)&i.s == 0 {
				w[i.dst] = bit(a.v^i.k < b.v^i.k)
				continue
			}
		case opSLE:
			a, b := &w[i.a], &w[i.b]
			if a.u|b.u|(a.v^b.v)&i.s == 0 {
				w[i.dst] = bit(a.v^i.k <= b.v^i.k)
				continue
			}
		case opEqBr:
			a, b := &w[i.a], &w[i.b]
			if a.u|b.u|(a.v^b.v)&i.s == 0 {
				if a.v == b.v {
					w[i.dst], e = word{v: 1}, i.yes
				} else {
					w[i.dst], e = word{}, i.no
				}
				goto follow
			}
		case opNeBr:
			a, b := &w[i.a], &w[i.b]
			if a.u|b.u|(a.v^b.v)&i.s == 0 {
				if a.v != b.v {
					w[i.dst], e = word{v: 1}, i.yes
				} else {
					w[i.dst], e = word{}, i.no
				}
				goto follow
			}
		case opULTBr:
			a, b := &w[i.a], &w[i.b]
			if a.u|b.u|(a.v^b.v)&i.s == 0 {
				if a.v < b.v {
					w[i.dst], e = word{v: 1}, i.yes
				} else {
					w[i.dst], e = word{}, i.no
				}
				goto follow
			}
		case opULEBr:
			a, b := &w[i.a], &w[i.b]
			if a.u|b.u|(a.v^b.v)&i.s == 0 {
				if a.v <= b.v {
					w[i.dst], e = word{v: 1}, i.yes
				} else {
					w[i.dst], e = word{}, i.no
				}
				goto follow
			}
		case opSLTBr:
			a, b := &w[i.a], &w[i.b]
			if a.u|b.u|(a.v^b.v)&i.s == 0 {
				if a.v^i.k < b.v^i.k {
					w[i.dst], e = word{v: 1}, i.yes
				} else {
					w[i.dst], e = word{}, i.no
				}
				goto follow
			}
		case opSLEBr:
			a, b := &w[i.a], &w[i.b]
			if a.u|b.u|(a.v^b.v)&i.s == 0 {
				if a.v^i.k <= b.v^i.k {
					w[i.dst], e = word{v: 1}, i.yes
				} else {
					w[i.dst], e = word{}, i.no
				}
				goto follow
			}
		case opSExt:
			if a := &w[i.a]; a.u == 0 {
				w[i.dst] = word{v: uint64(extended(a.v, i.cut)) & i.k}
				continue
			}
		case opTrunc:
			if a := &w[i.a]; a.u|a.v&i.s == 0 {
				w[i.dst] = word{v: a.v & i.k}
				continue
			}
		case opTruncNSW:
			if a := &w[i.a]; a.u == 0 && extended(a.v, i.cut) == extended(a.v, uint8(i.s)) {
				w[i.dst] = word{v: a.v & i.k}
				continue
			}
		case opSelect:
			if c := &w[i.k]; c.u == 0 {
				if c.v != 0 {
					w[i.dst] = w[i.a]
				} else {
					w[i.dst] = w[i.b]
				}
				continue
			}
		case opOffset:
			if a := &w[i.a]; a.u|(a.v|(a.v+i.k))>>(i.top&63) == 0 {
				w[i.dst] = word{v: a.v + i.k}
				continue
			}
		case opIndex:
			a, b := &w[i.a], &w[i.b]
			x := extended(b.v, i.cut)
			if r := a.v + uint64(x)*i.k + i.s; a.u|b.u|(a.v|r)>>(i.top&63) == 0 && small(x) {
				w[i.dst] = word{v: r}
				continue
			}
		case opIndex2:
			a, b, c := &w[i.a], &w[i.b], &w[i.c]
			x, y := extended(b.v, i.cut), extended(c.v, i.cut)
			r := a.v + uint64(x)*i.k + uint64(y)*(i.s&math.MaxUint32) + uint64(int64(i.s)>>32)
			if a.u|b.u|c.u|(a.v|r)>>63 == 0 && small(x) && small(y) {
				w[i.dst] = word{v: r}
				continue
			}
		case opIndexNUW:
			a, b := &w[i.a], &w[i.b]
			x := extended(b.v, i.cut)
			if r := a.v + uint64(x)*i.k + i.s; a.u|b.u|(a.v|r)>>(i.top&63)|uint64(x)>>31 == 0 {
				w[i.dst] = word{v: r}
				continue
			}
		case opIndex2NUW:
			a, b, c := &w[i.a], &w[i.b], &w[i.c]
			x, y := extended(b.v, i.cut), extended(c.v, i.cut)
			r := a.v + uint64(x)*i.k + uint64(y)*(i.s&math.MaxUint32) + uint64(int64(i.s)>>32)
			if a.u|b.u|c.u|(a.v|r)>>63|uint64(x|y)>>31 == 0 {
				w[i.dst] = word{v: r}
				continue
			}
		case opLoad8:
			if a := &w[i.a]; a.u == 0 {
				if p := view.hot(a.v); p != nil {
					if off := a.v % pageSize; p.shadow[off] == 0 {
						w[i.dst] = word{v: uint64(p.data[off])}
						continue
					}
				}
			}
		case opLoad16:
			if a := &w[i.a]; a.u|a.v&1 == 0 {
				if p := view.hot(a.v); p != nil {
					off := a.v % pageSize
					if little16(&p.shadow, off) == 0 {
						w[i.dst] = word{v: uint64(little16(&p.data, off))}
						continue
					}
				}
			}
		case opLoad32:
			if a := &w[i.a]; a.u|a.v&3 == 0 {
				if p := view.hot(a.v); p != nil {
					off := a.v % pageSize
					if little32(&p.shadow, off) == 0 {
						w[i.dst] = word{v: uint64(little32(&p.data, off))}
						continue
					}
				}
			}
		case opLoad64:
			if a := &w[i.a]; a.u|a.v&7 == 0 {
				if p := view.hot(a.v); p != nil {
					off := a.v % pageSize
					if little64(&p.shadow, off) == 0 {
						w[i.dst] = word{v: little64(&p.data, off)}
						continue
					}
				}
			}
		case opStore8:
			a, b := &w[i.a], &w[i.b]
			if a.u|b.u == 0 {
				if p := view.hotOwn(b.v); p != nil {
					if off := b.v % pageSize; p.valid[off/64]>>(off%64)&1 != 0 {
						p.data[off], p.shadow[off] = byte(a.v), 0
						continue
					}
				}
			}
		case opStore16:
			a, b := &w[i.a], &w[i.b]
			if a.u|b.u|b.v&1 == 0 {
				if p := view.hotOwn(b.v); p != nil {
					off := b.v % pageSize
					if little16(&p.shadow, off) == 0 {
						putLittle16(&p.data, off, uint16(a.v))
						continue
					}
					if p.valid[off/64]>>(off%64)&3 == 3 {
						putLittle16(&p.data, off, uint16(a.v))
						putLittle16(&p.shadow, off, 0)
						continue
					}
				}
			}
		case opStore32:
			a, b := &w[i.a], &w[i.b]
			if a.u|b.u|b.v&3 == 0 {
				if p := view.hotOwn(b.v); p != nil {
					off := b.v % pageSize
					if little32(&p.shadow, off) == 0 {
						putLittle32(&p.data, off, uint32(a.v))
						continue
					}
					if p.valid[off/64]>>(off%64)&15 == 15 {
						putLittle32(&p.data, off, uint32(a.v))
						putLittle32(&p.shadow, off, 0)
						continue
					}
				}
			}
		case opStore64:
			a, b := &w[i.a], &w[i.b]
			if a.u|b.u|b.v&7 == 0 {
				if p := view.hotOwn(b.v); p != nil {
					off := b.v % pageSize
					if little64(&p.shadow, off) == 0 {
						putLittle64(&p.data, off, a.v)
						continue
					}
					if p.valid[off/64]>>(off%64)&255 == 255 {
						putLittle64(&p.data, off, a.v)
						putLittle64(&p.shadow, off, 0)
						continue
					}
				}
			}
		case opFAdd64:
			if a, b := &w[i.a], &w[i.b]; a.u|b.u == 0 {
				w[i.dst] = word{v: double(math.Float64frombits(a.v)+math.Float64frombits(b.v), a.v, b.v)}
				continue
			}
		case opFSub64:
			if a, b := &w[i.a], &w[i.b]; a.u|b.u == 0 {
				w[i.dst] = word{v: double(math.Float64frombits(a.v)-math.Float64frombits(b.v), a.v, b.v)}
				continue
			}
		case opFMul64:
			if a, b := &w[i.a], &w[i.b]; a.u|b.u == 0 {
				w[i.dst] = word{v: double(math.Float64frombits(a.v)*math.Float64frombits(b.v), a.v, b.v)}
				continue
			}
		case opFDiv64:
			if a, b := &w[i.a], &w[i.b]; a.u|b.u == 0 {
				w[i.dst] = word{v: double(math.Float64frombits(a.v)/math.Float64frombits(b.v), a.v, b.v)}
				continue
			}
		case opFAdd32:
			if a, b := &w[i.a], &w[i.b]; a.u|b.u == 0 {
				w[i.dst] = word{v: single(float(a.v)+float(b.v), a.v, b.v)}
				continue
			}
		case opFSub32:
			if a, b := &w[i.a], &w[i.b]; a.u|b.u == 0 {
				w[i.dst] = word{v: single(float(a.v)-float(b.v), a.v, b.v)}
				continue
			}
		case opFMul32:
			if a, b := &w[i.a], &w[i.b]; a.u|b.u == 0 {
				w[i.dst] = word{v: single(float(a.v)*float(b.v), a.v, b.v)}
				continue
			}
		case opFDiv32:
			if a, b := &w[i.a], &w[i.b]; a.u|b.u == 0 {
				w[i.dst] = word{v: single(float(a.v)/float(b.v), a.v, b.v)}
				continue
			}
		case opFCmp64:
			if a, b := &w[i.a], &w[i.b]; a.u|b.u == 0 {
				w[i.dst] = bit(i.k&order(math.Float64frombits(a.v), math.Float64frombits(b.v)) != 0)
				continue
			}
		case opFCmp32:
			if a, b := &w[i.a], &w[i.b]; a.u|b.u == 0 {
				w[i.dst] = bit(i.k&order(float64(float(a.v)), float64(float(b.v))) != 0)
				continue
			}
		case opSIToFP64:
			if a := &w[i.a]; a.u == 0 {
				w[i.dst] = word{v: math.Float64bits(float64(extended(a.v, i.cut)))}
				continue
			}
		case opFPExt:
			if a := &w[i.a]; a.u == 0 {
				w[i.dst] = word{v: math.Float64bits(widened(uint32(a.v)))}
				continue
			}
		case opFNeg:
			if a := &w[i.a]; a.u == 0 {
				w[i.dst] = word{v: a.v ^ i.k}
				continue
			}
		case opShort:
			a, b, c := &w[i.a], &w[i.b], &w[i.c]
			if a.u|b.u|c.u == 0 {
				if r, ok := fr.fn.shorts[i.k](a.v, b.v, c.v); ok {
					w[i.dst] = word{v: r}
					continue
				}
			}
		case opPair:
			if a, b := &w[i.a], &w[i.b]; a.u|b.u == 0 {
				r, over := fr.fn.pairs[i.k](a.v, b.v)
				w[i.dst], w[i.dst+1] = word{v: r}, bit(over)
				continue
			}
		case opNothing:
			continue
		case opSwitch:
			if a := &w[i.a]; a.u == 0 {
				e = fr.fn.tables[i.k].of(a.v)
				goto follow
			}
		case opIndirect:
			if a := &w[i.a]; a.u == 0 {
				if e = fr.fn.targets[i.k][a.v]; e != nil {
					goto follow
				}
			}
			// The step computes the target, and adds its edge to targets.
			fr.pc = pc
			if err := i.run(fr); err != nil {
				return in.located(err, true)
			}
			e, fr.next = fr.next, nil
			goto follow
		case opJump:
			e = i.yes
			goto follow
		case opBranch:
			if c := &w[i.a]; c.u == 0 {
				if e = i.no; c.v != 0 {
					e = i.yes
				}
				goto follow
			}
		case opRet:
			if len(fr.ret) == 1 {
				fr.ret[0] = w[i.a]
			}
			fallthrough
		case opRetAny:
			in.pop()
			if in.frames.n <= base {
				return nil
			}
			fr = in.top()
			code, w, pc = fr.fn.code, fr.w, fr.pc
			if in.run.steps += uint64(code[pc-1].rest); in.run.steps >= in.run.look || in.frames.n < in.run.floor {
				in.run.steps -= uint64(code[pc-1].rest)
				if err := in.admit(fr); err != nil || in.run.single {
					return err
				}
			}
			continue
		case opCall:
			fr.pc = pc
			in.run.steps -= uint64(i.rest) // count the rest of the block after the callee's steps, because clocks read the count
			if err := i.run(fr); err != nil {
				return in.located(err, true)
			}
			if fr = in.top(); in.run.entered {
				in.run.entered = false
				in.run.steps += fr.fn.blocks[0].size
				if in.run.steps >= in.run.look || fr.fn.blocks[0].stop {
					if err := in.pause(fr.fn.blocks[0]); err != nil || in.run.single {
						return err
					}
				}
			} else if in.run.steps += uint64(i.rest); in.run.steps >= in.run.look {
				in.run.steps -= uint64(i.rest)
				if err := in.admit(fr); err != nil || in.run.single {
					return err
				}
			}
			code, w, pc = fr.fn.code, fr.w, fr.pc
			continue
		case opEnd:
			fr.pc = pc
			if err := i.run(fr); err != nil {
				return in.located(err, true)
			}
			if in.frames.n <= base {
				return nil
			}
			if e = fr.next; e != nil {
				fr.next = nil
				goto follow
			}
			// Without an edge, the step was a ret of more than one word.
			fr = in.top()
			if err := in.admit(fr); err != nil || in.run.single {
				return err
			}
			code, w, pc = fr.fn.code, fr.w, fr.pc
			continue
		}
		fr.pc = pc
		in.run.steps -= uint64(i.rest) // count the rest of the block after the bulk work of this instruction
		if err := i.run(fr); err != nil {
			return in.located(err, true)
		}
		if in.run.steps += uint64(i.rest); in.run.steps >= in.run.look {
			in.run.steps -= uint64(i.rest)
			if err := in.admit(fr); err != nil || in.run.single {
				return err
			}
		}
		continue

	follow:
		if e.simple {
			for m := range e.moves {
				w[e.moves[m].to] = w[e.moves[m].from]
			}
		} else {
			e.follow(fr)
		}
		pc = e.to.start
		e.to.runs++
		in.run.steps += e.to.size
		if in.run.steps >= in.run.look || e.to.stop {
			fr.pc = pc
			if err := in.pause(e.to); err != nil || in.run.single {
				return err
			}
		}
	}
}

// extended sign-extends a number to 64 bits; cut is 64 minus its width.
func extended(v uint64, cut uint8) int64 { return int64(v<<(cut&63)) >> (cut & 63) }

// small reports whether x fits in 32 bits. The product of two such numbers fits in 64.
func small(x int64) bool { return uint64(x+1<<31) < 1<<32 }

func float(v uint64) float32 { return math.Float32frombits(uint32(v)) }

// order returns the outcome of a float comparison as a bit of the masks in outcomes.
func order(a, b float64) uint64 {
	switch {
	case a == b:
		return 1
	case a > b:
		return 2
	case a < b:
		return 4
	}
	return 8
}
