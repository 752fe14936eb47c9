package interp

import (
	"slices"

	"example.com/reframe/internal/llvm/ir"
)

// Profiled counts how often a block was entered, and how many of its instructions ran. A run may end or stop inside a block, so Instrs is not always
// a multiple of the block's size.
type Profiled struct {
	Block  *ir.Block
	Runs   uint64
	Instrs uint64 // phis included, as [Result].Steps counts
}

// Profile returns the counts of the blocks that have run since the Interp was made, in all functions. The order is that of the modules; the
// interpreter's IR of libstdc++ comes last.
func (in *Interp) Profile() []Profiled {
	open := map[*block]int64{}
	in.unfinished(func(b *block, n int64) { open[b] += n })
	var list []Profiled
	mods := in.mods
	if in.runtime != nil {
		mods = append(slices.Clip(mods), in.runtime)
	}
	for _, m := range mods {
		for _, f := range m.Funcs {
			fn := in.code[f]
			if fn == nil {
				continue
			}
			for _, b := range fn.blocks {
				p := Profiled{b.ir, b.runs, uint64(int64(b.runs*b.size) - b.short - open[b])}
				if p.Runs > 0 || p.Instrs > 0 {
					list = append(list, p)
				}
			}
		}
	}
	return list
}

// unfinished calls tell for each active frame, with the frame's current block and the number of instructions in it that have not run.
func (in *Interp) unfinished(tell func(b *block, n int64)) {
	x := in.run.of
	begun := x != nil && x.done && !in.run.before
	for k, fr := range in.frames.list[:in.frames.n] {
		fr.unfinished(k < in.frames.n-1 || begun, tell)
	}
}

// unfinished is [Interp.unfinished] for one frame. If the frame waits, the instruction at which it waits counts as run.
func (fr *frame) unfinished(waits bool, tell func(b *block, n int64)) {
	i := fr.at(waits)
	if i == nil {
		return
	}
	b := fr.fn.blocks[i.Block.Index]
	if waits {
		tell(b, int64(fr.fn.code[fr.pc-1].rest))
		return
	}
	next := fr.fn.code[fr.pc]
	tell(b, int64(next.rest)+int64(next.count))
}

// abandon is called before a frame is removed. It records that the remaining instructions of the frame's current block will not run.
func (fr *frame) abandon(waits bool) {
	fr.unfinished(waits, func(b *block, n int64) { b.short += n })
}
