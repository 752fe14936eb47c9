# Halide: a pipeline that is compiled on first use, and runs for long.
import halide as hl

x, y = hl.Var("x"), hl.Var("y")
f = hl.Func("field")
r = hl.RDom([(0, 1 << 20)])
f[x, y] = 0.0
f[x, y] += hl.sin(hl.f32(x + y + r.x))
f.compile_jit()
print("ready", flush=True)
f.realize([1 << 12, 1 << 12])
