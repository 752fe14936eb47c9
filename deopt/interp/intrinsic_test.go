package interp_test

import (
	"fmt"
	"math/big"
	"testing"
)

func TestIntegerIntrinsicsAreAsNative(t *testing.T) {
	for _, width := range []int{8, 16, 32, 33, 64, 128} {
		t.Run(fmt.Sprintf("i%d", width), func(t *testing.T) {
			var g generator
			typ := fmt.Sprintf("i%d", width)
			one := typ + " %a"
			two := one + ", " + typ + " %b"
			var unary, binary, shifts, ternary []string
			declare := func(name, result, params string) {
				fmt.Fprintf(&g.funcs, "declare %s @llvm.%s.%s(%s)\n", result, name, typ, params)
			}
			for _, name := range []string{"ctpop", "bitreverse", "bswap"} {
				if name == "bswap" && width%16 != 0 {
					continue
				}
				declare(name, typ, typ)
				unary = append(unary, g.function(one, typ, fmt.Sprintf("  %%r = call %s @llvm.%s.%s(%s %%a)\n", typ, name, typ, typ)))
			}
			for _, name := range []string{"ctlz", "cttz", "abs"} {
				declare(name, typ, typ+", i1")
				unary = append(unary, g.function(one, typ, fmt.Sprintf("  %%r = call %s @llvm.%s.%s(%s %%a, i1 false)\n", typ, name, typ, typ)))
			}
			for _, name := range []string{"umin", "umax", "smin", "smax", "uadd.sat", "sadd.sat", "usub.sat", "ssub.sat"} {
				declare(name, typ, typ+", "+typ)
				binary = append(binary, g.function(two, typ, fmt.Sprintf("  %%r = call %s @llvm.%s.%s(%s %%a, %s %%b)\n", typ, name, typ, typ, typ)))
			}
			for _, name := range []string{"ushl.sat", "sshl.sat"} {
				declare(name, typ, typ+", "+typ)
				shifts = append(shifts, g.function(two, typ, fmt.Sprintf("  %%r = call %s @llvm.%s.%s(%s %%a, %s %%b)\n", typ, name, typ, typ, typ)))
			}
			for _, name := range []string{"sadd", "uadd", "ssub", "usub", "smul", "umul"} {
				declare(name+".with.overflow", "{ "+typ+", i1 }", typ+", "+typ)
				for _, part := range []string{typ, "i1"} {
					index := 0
					if part == "i1" {
						index = 1
					}
					binary = append(binary, g.function(two, part, fmt.Sprintf(
						"  %%o = call { %s, i1 } @llvm.%s.with.overflow.%s(%s %%a, %s %%b)\n  %%r = extractvalue { %s, i1 } %%o, %d\n",
						typ, name, typ, typ, typ, typ, index)))
				}
			}
			for _, name := range []string{"fshl", "fshr"} {
				declare(name, typ, typ+", "+typ+", "+typ)
				ternary = append(ternary, g.function(two+", "+typ+" %c", typ,
					fmt.Sprintf("  %%r = call %s @llvm.%s.%s(%s %%a, %s %%b, %s %%c)\n", typ, name, typ, typ, typ, typ)))
			}
			for _, a := range edges(width) {
				for _, f := range unary {
					g.call(f, fmt.Sprintf("%s %v", typ, a))
				}
				for _, b := range edges(width) {
					for _, f := range binary {
						g.call(f, fmt.Sprintf("%s %v, %s %v", typ, a, typ, b))
					}
					for _, f := range shifts {
						if b.Sign() >= 0 && b.Cmp(big.NewInt(int64(width))) < 0 {
							g.call(f, fmt.Sprintf("%s %v, %s %v", typ, a, typ, b))
						}
					}
					for _, f := range ternary {
						for _, c := range []int{0, 1, width - 1, width, 77} {
							if width == 8 && c == 77 {
								c = -3
							}
							g.call(f, fmt.Sprintf("%s %v, %s %v, %s %d", typ, a, typ, b, typ, c))
						}
					}
				}
			}
			sameAsLinked(t, g.module(), "19")
		})
	}
}

func TestFloatIntrinsicsAreAsNative(t *testing.T) {
	for _, k := range []struct{ kind, suffix, bits string }{{"float", "f32", "i32"}, {"double", "f64", "i64"}} {
		t.Run(k.kind, func(t *testing.T) {
			var g generator
			convert := func(name string) string {
				if k.kind == "double" {
					return fmt.Sprintf("  %%%s = fadd double %%%s.d, -0.0\n", name, name)
				}
				return fmt.Sprintf("  %%%s = fptrunc double %%%s.d to %s\n", name, name, k.kind)
			}
			var unary, binary, ternary, powers []string
			for _, name := range []string{"fabs", "sqrt", "floor", "ceil", "trunc", "rint", "nearbyint", "round", "roundeven"} {
				fmt.Fprintf(&g.funcs, "declare %s @llvm.%s.%s(%s)\n", k.kind, name, k.suffix, k.kind)
				unary = append(unary, g.function("double %a.d", k.bits, convert("a")+
					fmt.Sprintf("  %%x = call %s @llvm.%s.%s(%s %%a)\n", k.kind, name, k.suffix, k.kind)+bitsOf(k.kind, k.bits)))
			}
			for _, width := range []string{"i8", "i32", "i64"} {
				for _, name := range []string{"fptosi.sat", "fptoui.sat"} {
					fmt.Fprintf(&g.funcs, "declare %s @llvm.%s.%s.%s(%s)\n", width, name, width, k.suffix, k.kind)
					unary = append(unary, g.function("double %a.d", width, convert("a")+
						fmt.Sprintf("  %%r = call %s @llvm.%s.%s.%s(%s %%a)\n", width, name, width, k.suffix, k.kind)))
				}
			}
			for _, name := range []string{"copysign", "minnum", "maxnum"} {
				fmt.Fprintf(&g.funcs, "declare %s @llvm.%s.%s(%s, %s)\n", k.kind, name, k.suffix, k.kind, k.kind)
				// Which zero minnum gives is open, so zeros are made positive.
				binary = append(binary, g.function("double %a.d, double %b.d", k.bits, convert("a")+convert("b")+
					fmt.Sprintf("  %%y = call %s @llvm.%s.%s(%s %%a, %s %%b)\n  %%x = fadd %s %%y, 0.0\n", k.kind, name, k.suffix, k.kind, k.kind, k.kind)+
					bitsOf(k.kind, k.bits)))
			}
			fmt.Fprintf(&g.funcs, "declare %s @llvm.fma.%s(%s, %s, %s)\n", k.kind, k.suffix, k.kind, k.kind, k.kind)
			ternary = append(ternary, g.function("double %a.d, double %b.d, double %c.d", k.bits, convert("a")+convert("b")+convert("c")+
				fmt.Sprintf("  %%x = call %s @llvm.fma.%s(%s %%a, %s %%b, %s %%c)\n", k.kind, k.suffix, k.kind, k.kind, k.kind)+bitsOf(k.kind, k.bits)))
			fmt.Fprintf(&g.funcs, "declare %s @llvm.powi.%s.i32(%s, i32)\n", k.kind, k.suffix, k.kind)
			powers = append(powers, g.function("double %a.d, i32 %n", k.bits, convert("a")+
				fmt.Sprintf("  %%x = call %s @llvm.powi.%s.i32(%s %%a, i32 %%n)\n", k.kind, k.suffix, k.kind)+bitsOf(k.kind, k.bits)))
			for i, a := range floats {
				for _, f := range unary {
					g.call(f, fmt.Sprintf("double 0x%016X", a))
				}
				for _, n := range []int{0, 1, -1, 5, -6, 13} {
					for _, f := range powers {
						g.call(f, fmt.Sprintf("double 0x%016X, i32 %d", a, n))
					}
				}
				for j, b := range floats {
					for _, f := range binary {
						g.call(f, fmt.Sprintf("double 0x%016X, double 0x%016X", a, b))
					}
					for _, f := range ternary {
						g.call(f, fmt.Sprintf("double 0x%016X, double 0x%016X, double 0x%016X", a, b, floats[(i*7+j*3)%len(floats)]))
					}
				}
			}
			sameAsLinked(t, g.module(), "19")
		})
	}
}
