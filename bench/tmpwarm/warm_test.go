package bench2
import ("testing";"os";"strconv";"strings";"fmt";"reframe/ptrace";"reframe/deopt";"reframe/deopt/unwind")
func BenchmarkWarm(b *testing.B) {
	for _, k := range []string{"deep19","no19","unreg14"} {
		text, _ := os.ReadFile("/tmp/f/pid-"+k)
		pid, _ := strconv.Atoi(strings.TrimSpace(string(text)))
		t, err := ptrace.Capture(pid, ptrace.Options{})
		if err != nil { b.Fatal(err) }
		v, err := deopt.Frames(t, deopt.Options{})
		if err != nil { b.Fatal(err) }
		u := v.Unwinder()
		regs := t.Threads()[0].Registers
		n := len(u.Walk(regs, nil).Frames)
		for _, again := range []bool{false,true} {
		b.Run(fmt.Sprint(k,again), func(b *testing.B){
			b.ReportAllocs()
			var before *unwind.Stack
			if again { before = u.Walk(regs,nil) }
			for range b.N { u.Walk(regs, before) }
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/frame")
		})
		}
	}
}
