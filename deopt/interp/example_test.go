package interp_test

import (
	"context"
	"fmt"

	"example.com/reframe/deopt/interp"
	"example.com/reframe/internal/llvm/ir"
)

const addition = `declare i32 @host_add(i32, i32)
define i32 @sum(i32 %n) {
entry:
  br label %loop
loop:
  %i = phi i32 [ %n, %entry ], [ %less, %loop ]
  %acc = phi i32 [ 0, %entry ], [ %more, %loop ]
  %more = call i32 @host_add(i32 %acc, i32 %i)
  %less = sub i32 %i, 1
  %done = icmp eq i32 %less, 0
  br i1 %done, label %end, label %loop
end:
  ret i32 %more
}
`

// hostAdd is a function that the module only declares.
func hostAdd(c *interp.Invocation) (interp.Value, error) {
	a, err := c.Uint(0)
	if err != nil {
		return interp.Value{}, err
	}
	b, err := c.Uint(1)
	if err != nil {
		return interp.Value{}, err
	}
	return c.Return(a + b)
}

// This example runs a function of a module from its start. A Go function implements a function that the module only declares.
func ExampleInterp_Call() {
	m, err := ir.Parse("addition.ll", []byte(addition))
	if err != nil {
		panic(err)
	}
	in, err := interp.New(m, interp.Options{Funcs: map[string]interp.Builtin{"host_add": hostAdd}})
	if err != nil {
		panic(err)
	}
	result, err := in.Call(context.Background(), m.Func("sum"), []interp.Value{interp.FromUint(ir.I32, 100)})
	if err != nil {
		panic(err)
	}
	fmt.Println(result.Value.Type(), result.Value.Format(), "after", result.Steps, "instructions")
	// Output:
	// i32 5050 after 602 instructions
}

// This example stops a run whenever it enters a block, and then continues it.
func ExampleExecution() {
	m, err := ir.Parse("addition.ll", []byte(addition))
	if err != nil {
		panic(err)
	}
	in, err := interp.New(m, interp.Options{Funcs: map[string]interp.Builtin{"host_add": hostAdd}})
	if err != nil {
		panic(err)
	}
	sum := m.Func("sum")
	x, err := in.StartCall(sum, []interp.Value{interp.FromUint(ir.I32, 3)})
	if err != nil {
		panic(err)
	}
	if err := x.StopAt(sum.Block("loop"), true); err != nil {
		panic(err)
	}
	for {
		result, err := x.Run(context.Background())
		if err != nil {
			panic(err)
		}
		if result != nil {
			fmt.Println("returned", result.Value.Format(), "after", result.Steps, "instructions")
			return
		}
		i, _ := x.Value(0, sum.Value("i"))
		acc, _ := x.Value(0, sum.Value("acc"))
		fmt.Printf("at line %d: %%i = %s, %%acc = %s\n", x.At(0).Line, i.Format(), acc.Format())
	}
	// Output:
	// at line 8: %i = 3, %acc = 0
	// at line 8: %i = 2, %acc = 3
	// at line 8: %i = 1, %acc = 5
	// returned 6 after 20 instructions
}
