package deopt_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/internal/static/maps"
	"example.com/reframe/test/frametest"
	"example.com/reframe/test/livetest"
)

const orderHead = `
target triple = "x86_64-pc-linux-gnu"
declare void @A()
declare void @B()
declare i64 @any()
declare i32 @__gxx_personality_v0(...)
declare void @llvm.experimental.guard(i1, ...)
declare i64 @llvm.experimental.deoptimize.i64(...)
define i64 @f(i64 %a, i64 %b, i64 %c, i64 %d) personality ptr @__gxx_personality_v0 {
`

// TestOrder requires the sites that the order of records determines, or the reason if it determines none. The code comes from the field compiled
// if that is set, otherwise from the module.
func TestOrder(t *testing.T) {
	livetest.Slow(t)
	const (
		either = "; the order of its records does not determine the site: "
		shared = either + "several sites are possible in this position"
	)
	for _, c := range []struct {
		name, module, compiled string
		want                   []string // the names that each record has, or the end of the note
	}{
		{"in one block", `
  call void @A() [ "deopt"(i64 %a) ]
  call void @B() [ "deopt"(i64 %b) ]
  call void @A() [ "deopt"(i64 %c) ]
  ret i64 0
}`, "", []string{"%a", "%b", "%c"}},
		{"two ways alike", `
  %x = call i64 @any()
  %y = trunc i64 %x to i1
  br i1 %y, label %one, label %two
one:
  call void @A() [ "deopt"(i64 %a) ]
  br label %done
two:
  call void @A() [ "deopt"(i64 %b) ]
  br label %done
done:
  call void @A() [ "deopt"(i64 %c) ]
  ret i64 0
}`, "", []string{shared, shared, "%c"}},
		// LLVM may merge the second and the third call, so that one record belongs to both.
		{"two ways that differ behind", `
  %x = call i64 @any()
  %y = trunc i64 %x to i1
  br i1 %y, label %one, label %two
one:
  call void @A() [ "deopt"(i64 %a) ]
  call void @A() [ "deopt"(i64 %b) ]
  br label %done
two:
  call void @A() [ "deopt"(i64 %c) ]
  br label %done
done:
  call void @A() [ "deopt"(i64 1, i64 2) ]
  ret i64 0
}`, "", []string{"%a", ""}},
		{"a loop", `
  call void @A() [ "deopt"(i64 %a) ]
  br label %loop
loop:
  call void @A() [ "deopt"(i64 %b) ]
  call void @A() [ "deopt"(i64 %c) ]
  %x = call i64 @any()
  %y = trunc i64 %x to i1
  br i1 %y, label %loop, label %done
done:
  call void @A() [ "deopt"(i64 %d) ]
  ret i64 0
}`, "", []string{"%a", "%b", "%c", "%d"}},
		// Machine code does not show which calls may unwind to the landing pad, so the order of the sites does not determine them.
		{"a landing pad", `
  call void @A() [ "deopt"(i64 %a) ]
  invoke void @A() [ "deopt"(i64 %b) ] to label %ok unwind label %bad
ok:
  call void @A() [ "deopt"(i64 %c) ]
  ret i64 0
bad:
  %l = landingpad { ptr, i32 } cleanup
  call void @A() [ "deopt"(i64 %d) ]
  ret i64 1
}`, "", nil},
		{"another module", `
  call void @A() [ "deopt"(i64 %a) ]
  call void @A() [ "deopt"(i64 %b) ]
  ret i64 0
}`, `
  call void @A() [ "deopt"(i64 %a) ]
  call void @A() [ "deopt"(i64 %b) ]
  call void @A() [ "deopt"(i64 %c) ]
  ret i64 0
}`, []string{"no names: module.ll defines @f with calls in another order: only the code calls @A at this position"}},
		// An indirect call hides the names of callees, and only the values of the entry block are computed.
		{"another module, with an indirect call", `
  %p = inttoptr i64 %d to ptr
  call void %p()
  br label %on
on:
  call void @A() [ "deopt"(i64 %a) ]
  call void @A() [ "deopt"(i64 %b) ]
  ret i64 0
}`, `
  %p = inttoptr i64 %d to ptr
  call void %p()
  br label %on
on:
  call void @A() [ "deopt"(i64 %a) ]
  call void @A() [ "deopt"(i64 %b) ]
  call void @A() [ "deopt"(i64 %c) ]
  ret i64 0
}`, []string{either + "the order of the records in the code differs from that of the sites in the module"}},
		{"a module with more", `
  call void @A() [ "deopt"(i64 %a) ]
  %x = call i64 @any()
  %y = trunc i64 %x to i1
  br i1 %y, label %one, label %done
one:
  call void @A() [ "deopt"(i64 %b) ]
  br label %done
done:
  ret i64 0
}`, `
  call void @A() [ "deopt"(i64 %a) ]
  ret i64 0
}`, []string{"no names: module.ll defines @f with a call of @any, which the code does not name"}},
		{"a module with more, after an indirect call", `
  %p = inttoptr i64 %d to ptr
  call void %p()
  br label %on
on:
  call void @A() [ "deopt"(i64 %a) ]
  %x = call i64 %p()
  %y = trunc i64 %x to i1
  br i1 %y, label %one, label %done
one:
  call void @A() [ "deopt"(i64 %b) ]
  br label %done
done:
  ret i64 0
}`, `
  %p = inttoptr i64 %d to ptr
  call void %p()
  br label %on
on:
  call void @A() [ "deopt"(i64 %a) ]
  ret i64 0
}`, []string{either + "the site of line 20 of the module has no record in its position"}},
		// The computations in the code distinguish the sites of the entry block: their values are the same when setjmp returns again.
		{"a function that returns twice", `
  %x = call i32 @setjmp(ptr null)
  call void @A() [ "deopt"(i64 %a) ]
  call void @A() [ "deopt"(i64 %b) ]
  ret i64 0
}
declare i32 @setjmp(ptr)`, "", []string{"%a", "%b"}},
		{"a function that returns twice, with two blocks", `
  %x = call i32 @setjmp(ptr null)
  br label %on
on:
  call void @A() [ "deopt"(i64 %a) ]
  call void @A() [ "deopt"(i64 %b) ]
  ret i64 0
}
declare i32 @setjmp(ptr)`, "", []string{either + "@setjmp may return twice", either + "@setjmp may return twice"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, m := frametest.Written(t, "module.ll", orderHead+c.module)
			if c.compiled == "" {
				c.compiled = c.module
			}
			path, _ := frametest.Written(t, "order.ll", orderHead+c.compiled)
			for _, version := range []int{16, 19, 22} {
				for _, flags := range [][]string{{"-O0"}, {"-O2"}, {"-O2", "-code-model=large"}, {"-O2", "-relocation-model=pic"}, {"-O3", "-tail-dup-size=30"}} {
					got := frametest.Readings(t, frametest.MapsOf(t, frametest.LLC(t, version, path, flags...), m))
					told := map[string]bool{}
					for _, line := range got {
						line = strings.TrimPrefix(line, "0 f: ")
						if at := strings.Index(line, either); at >= 0 {
							line = line[at:]
						}
						told[line] = true
					}
					how := fmt.Sprintf("llc-%d %v %q", version, flags, got)
					switch {
					case c.want == nil: // the first call cannot be distinguished from the landing pad's
						require.Len(t, got, 4)
					default:
						for _, want := range c.want {
							require.True(t, told[want], "%s: %s", want, how)
						}
						joined := c.name == "two ways that differ behind" && told[shared] && !told["%b"] && !told["%c"]
						for line := range told {
							apart := c.name == "two ways that differ behind" && told["%b"] && told["%c"] && (line == "%b" || line == "%c")
							require.True(t, apart || joined && line == shared || slices.Contains(c.want, line), how)
						}
					}
				}
			}
		})
	}
}

// TestOrderOfRewrittenStatepoints requires that each of the statepoints to which rewrite-statepoints-for-gc gave the same id is identified, in a
// process whose calls go through a register.
func TestOrderOfRewrittenStatepoints(t *testing.T) {
	livetest.Slow(t)
	text := prelude + `
define i64 @A(i64 %k) noinline {
  %c = icmp eq i64 %k, WHICH
  br i1 %c, label %stay, label %back
stay:
  %r = call i64 @wait(i64 1) "gc-leaf-function"
  br label %back
back:
  ret i64 %k
}
define i64 @work(i64 %s) noinline gc "statepoint-example" {
  %x = add i64 %s, 1
  %y = add i64 %s, 2
  %z = add i64 %s, 3
  %p = call i64 @A(i64 1) [ "deopt"(i64 %x) ]
  %q = call i64 @A(i64 2) [ "deopt"(i64 %y) ]
  %r = call i64 @A(i64 3) [ "deopt"(i64 %z) ]
  %u = add i64 %p, %q
  %v = add i64 %u, %r
  ret i64 %v
}` + start
	for _, version := range []int{16, 19, 22} {
		for _, kind := range []string{"mcjit", "orc"} {
			for which, name := range []string{"%x", "%y", "%z"} {
				p := livetest.Lli(t, version, program(t, strings.Replace(text, "WHICH", fmt.Sprint(which+1), 1)), kind)
				f := frametest.One(t, frametest.Look(t, p, false, frametest.Known(t, p)), "work")
				require.EqualValues(t, uint64(0xABCDEF00), f.Record.ID)
				require.Equal(t, fmt.Sprint(101+which), frametest.Slot(t, f, name).Value, "lli-%d %s", version, kind)
				require.Empty(t, f.Notes)
			}
		}
	}
}

// TestOrderOfTooMany requires that the order is not computed for a function with more sites than the bound.
func TestOrderOfTooMany(t *testing.T) {
	var b strings.Builder
	for k := range 2100 {
		fmt.Fprintf(&b, "  call void @A() [ \"deopt\"(i64 %%%c) ]\n", 'a'+k%4)
	}
	path, m := frametest.Written(t, "many.ll", orderHead+b.String()+"  ret i64 0\n}\n")
	image := frametest.MapsOf(t, frametest.LLC(t, 19, path, "-O0"), m).Images[0]
	for f := range image.Functions() {
		for rec := range f.Records() {
			var r maps.Reading
			f.Read(rec, &r)
			require.Contains(t, r.Note, "the order of its records does not determine the site: the function is too large")
			break
		}
	}
}
