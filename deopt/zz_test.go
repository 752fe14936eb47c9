package deopt
import ("testing";"fmt";"reframe/internal/livetest")
func TestZZ(t *testing.T) {
	text := prelude + `
define i64 @other(i64 %a) noinline {
  %r = call i64 @wait(i64 %a)
  ret i64 %r
}
define i64 @work(i64 %a) noinline gc "statepoint-example" {
  %t = call token (i64, i32, ptr, i32, i32, ...) @llvm.experimental.gc.statepoint.p0(i64 2882400000, i32 0, ptr elementtype(i64 (i64)) @other, i32 1, i32 0, i64 %a, i32 0, i32 0) [ "deopt"(i64 %a) ]
  ret i64 %a
}` + start
	for _, k := range []string{"mcjit","orc"} { for _, ver := range []int{16,19,22} {
	p := livetest.Lli(t, ver, raw(t, text), k)
	v := look(t, p, false, known(t, p))
	f := one(t, v, "work")
	var b [16]byte
	err := v.target.ReadMemory(b[:], f.physical.PC-16)
	to, ok := v.calledBefore(f.physical.PC)
	fmt.Printf("%d %s % x %v %v %v\n", ver, k, b, err, to, ok)
	}}
}
