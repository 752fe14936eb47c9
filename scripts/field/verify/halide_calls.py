"""Halide: a pipeline that allocates and prints, realized again and again. halide_calls.py FILE.ll: writes its IR, and waits for a line before it begins."""
import sys

import halide as hl

x, y = hl.Var("x"), hl.Var("y")
first, second, field = hl.Func("first"), hl.Func("second"), hl.Func("field")
r = hl.RDom([(0, 5)])
first[x, y] = hl.f32(x * 3 + y) * 0.5
second[x, y] = hl.i32(first[x, y] + first[x + 1, y] * hl.sqrt(first[x, y + 1]))
field[x, y] = 0
field[x, y] += second[x, y] * r.x % 7
field[x, y] += hl.print(hl.select(x == 3, y, 0), "of", x)
first.compute_root()
first.vectorize(x, 8)
second.compute_at(field, y)
target = hl.get_jit_target_from_environment().with_feature(hl.TargetFeature.UserContext)  # as compile_jit has it
field.compile_to_llvm_assembly(sys.argv[1], [], "field", target)
field.compile_jit()
print("ready", flush=True)
sys.stdin.readline()
for n in range(12):
    values = field.realize([4, 2])
print(values[3, 1])
