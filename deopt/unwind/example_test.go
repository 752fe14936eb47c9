//go:build linux && amd64

package unwind_test

import (
	"fmt"

	"example.com/reframe/deopt/unwind"
	"example.com/reframe/deopt/unwind/cfi"
	"example.com/reframe/internal/machine"
	"example.com/reframe/internal/machine/object"
	"example.com/reframe/ptrace"
)

// images finds the code of a target's files and of the objects that a JIT registered, with its unwind information.
type images struct {
	target *ptrace.Target
	codes  map[*object.Image]*unwind.Code
}

func (i *images) image(pc machine.Addr) *object.Image {
	if img, _ := i.target.JITObjectAt(pc); img != nil {
		return img
	}
	if m := i.target.ModuleAt(pc); m != nil {
		return m.Image
	}
	return nil
}

// Code returns the same value for the same code, as unwind.Finder requires.
func (i *images) Code(pc machine.Addr) *unwind.Code {
	img := i.image(pc)
	if i.codes[img] == nil {
		code := &unwind.Code{}
		if img != nil {
			code.Source = img.Name
			code.Start, _ = img.Start()
			code.Table, code.Err = cfi.TableOf(img)
		}
		i.codes[img] = code
	}
	return i.codes[img]
}

// This example prints the physical frames of a core of `reframe demo`, which it unwinds by call frame information.
func ExampleUnwinder_Walk() {
	target, err := ptrace.OpenCore("../../testdata/cores/demo.core.zst", ptrace.CoreOptions{Exe: "../../internal/demo/target-gcc12-llc19-amd64"})
	if err != nil {
		panic(err)
	}
	defer target.Close()
	found := &images{target, map[*object.Image]*unwind.Code{}}
	u := unwind.Unwinder{
		Arch: target.Arch(), Memory: target, Finder: found,
		Executable: func(addr machine.Addr) bool {
			m, ok := target.Mapping(addr)
			return ok && m.Exec
		},
	}
	for _, thread := range target.Threads() {
		stack := u.Walk(thread.Registers, nil)
		for _, f := range stack.Frames {
			symbol, _ := found.image(f.PC).SymbolAt(f.Lookup())
			fmt.Println(f.Rule, symbol.Name)
		}
		fmt.Println("complete:", stack.End.Complete)
	}
	// Output:
	// registers __llvm_deoptimize
	// cfi sum_opt
	// cfi call_optimized
	// cfi main_jit
	// cfi run
	// cfi _start
	// complete: true
}
