//go:build linux && amd64

package deopt_test

import (
	"fmt"

	"example.com/reframe/deopt"
	"example.com/reframe/internal/demo"
	"example.com/reframe/internal/llvm/ir"
	"example.com/reframe/ptrace"
)

// ExampleFrames shows the frames of a process that is stopped at an exit: that of `reframe demo`. The value without a name is a constant.
func ExampleFrames() {
	target, err := ptrace.OpenCore("../testdata/cores/demo.core.zst", ptrace.CoreOptions{Exe: "../internal/demo/target-gcc12-llc19-amd64"})
	if err != nil {
		panic(err)
	}
	defer target.Close()
	module, err := ir.Parse("target.ll", demo.IR)
	if err != nil {
		panic(err)
	}
	view, err := deopt.Frames(target, deopt.Options{Modules: []*ir.Module{module}})
	if err != nil {
		panic(err)
	}
	for _, thread := range view.Threads {
		for _, f := range thread.Frames {
			fmt.Println(f.Kind, f.Function)
			for _, s := range f.Slots {
				fmt.Println("-", s.Type.Source, s.Name, "=", s.Value, s.Status)
			}
		}
	}
	// Output:
	// native __llvm_deoptimize
	// jit sum_opt
	// - i32  = 3 ok
	// - i64 %i = 26 ok
	// - i64 %acc = 5525 ok
	// - i64 %n = 1000 ok
	// native call_optimized
	// jit main_jit
	// native run
	// native _start
}
