package lint_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/internal/llvm/ir"
	"example.com/reframe/internal/static/lint"
	"example.com/reframe/internal/vm/vmlayout"
)

// correct is a layout without mistakes. The lines that mistakes change are unique.
const correct = `CODE = {17: {"stack": 1, "locks": 1}, 19: {"stack": 0, "locks": 1}}
KINDS = {0: "i32", 1: "f64", 2: "ref"}

def value(r):
    kind = r.constant("a kind")
    return r.next().as_type(KINDS[kind])

def frames(site):
    r = site.operands.reader()
    f = frame(r.next(), r.constant("a position"))
    for n in range(r.constant("the number of locals")):
        f.local(n, value(r))
    f.push(r.next())
    f.monitor(r.next().as_type("ref"))
    o = virtual(r.constant("an id"), r.next())
    o.field(8, value(r))
    f.local(7, o)
    return f

def method_name(m):
    return {5: "Foo.bar"}[m]

def class_name(c):
    return {6: "Point"}[c]

def info(method, position):
    return CODE[position]
`

// mistakes lists changes of one line of the layout, each with the finding that lint must report: the line of the layout or the operand, and what is
// wrong.
var mistakes = []struct{ name, from, to, says string }{
	{"a forgotten return", "    return f\n", "", "frames(site) returned None for each site of the modules"},
	{"an i64 as f32", `f.push(r.next())`, `f.push(r.next().as_type("f32"))`, "stack[0] of frame 0, operand 7 (%s): it is i64, but f32 in the layout"},
	{"a number as owner", `f.monitor(r.next().as_type("ref"))`, `f.monitor(r.next().as_type("i64"))`, "lock 0 of frame 0, operand 8 (%lock): its owner is a number (i64); expected a reference"},
	{"a constant as owner", `f.monitor(r.next().as_type("ref"))`, `skip(r.next()); f.monitor(3)`, "vm.star:14:30: record 2882400015 of @f: monitor: the owner of a lock is i64 3; expected a reference or an object"},
	{"method_name without the method", `{5: "Foo.bar"}`, `{4: "Foo.bar"}`, `frame 0: the name of its method: vm.star:21:26: key 5 not in dict`},
	{"class_name returns a number", `return {6: "Point"}[c]`, `return c`, "object 1: the name of its class: vm.star:23:1: class_name returned a int; expected a text"},
	{"a shifted position", `r.constant("a position"))`, `r.constant("a position") + 1)`, "frame 0: info of position 18: vm.star:27:16: key 18 not in dict"},
	{"a position of another instruction", `r.constant("a position"))`, `r.constant("a position") + 2)`, `frame 0, at position 19: 1 on the operand stack, but in info "stack" is 0`},
	{"two values for a place", `f.local(7, o)`, `f.local(1, o)`, "vm.star:17:12: record 2882400015 of @f: two values for place 1, first in line 12:16"},
	{"two fields at an offset", `f.local(7, o)`, "f.local(7, o)\n    o.field(8, null())", "vm.star:18:12: record 2882400015 of @f: object 1 has two fields at 8, first in line 16:12"},
	{"an operand left out", `f.push(r.next())`, `pass`, "vm.star:15:27: record 2882400015 of @f: constant: operand 8 (ptr %lock) is a value; expected an id"},
	{"an operand used twice", `f.push(r.next())`, "f.push(r.next())\n    f.push(site.operands[7])", "vm.star:14:11: record 2882400015 of @f: push: operand 7 (i64 %s) is used a second time, first in line 13:11"},
	{"an operand forgotten", `o.field(8, value(r))`, `pass`, "vm.star:8:1: record 2882400015 of @f: operand 11 (i32) is neither used nor skipped"},
	{"a value where a constant is expected", `f.local(n, value(r))`, `f.local(n, r.constant("a local"))`, "vm.star:12:30: record 2882400015 of @f: constant: operand 4 (i32 %n) is a value; expected a local"},
	{"an unknown type", `2: "ref"`, `2: "pointer"`, `as_type: unknown type "pointer"`},
	{"an object that is not defined", `f.local(7, o)`, `f.local(7, object_ref(9))`, "vm.star:17:12: record 2882400015 of @f: local[7] of frame 0 is object 9, which is not defined"},
	{"an object twice", `f.local(7, o)`, `f.local(7, virtual(1, "Pair"))`, "vm.star:17:23: record 2882400015 of @f: object 1 is defined a second time, first in line 15:16"},
	{"a misspelled attribute", `f.push(r.next())`, `f.puhs(r.next())`, "vm.star:13:6: record 2882400015 of @f: frame has no .puhs field or method"},
	{"a resume of its own", `r.constant("a position"))`, `r.constant("a position"), "again")`, `vm.star:10:14: record 2882400015 of @f: frame: resume = "again"`},
	{"an integer as a reference of another width", `0: "i32"`, `0: "ref"`, "local[0] of frame 0, operand 4 (%n): it is i32, but ref in the layout"},
}

// TestLayoutMistakes requires that lint names each mistake of a layout once, with its line or its operand, although three sites have it.
func TestLayoutMistakes(t *testing.T) {
	call := "  call void @g() [ \"deopt\"(i64 5, i32 17, i32 2, i32 0, i32 %n, i32 1, double %d, i64 %s, ptr %lock, i32 1, i64 6, i32 2, ptr %p) ]\n"
	m, err := ir.Parse("vm.ll", []byte("declare void @g()\ndefine void @f(i32 %n, double %d, i64 %s, ptr %lock, ptr %p) {\n"+call+call+call+"  ret void\n}\n"))
	require.NoError(t, err)
	found := func(text string) (all []lint.Finding) {
		l, err := vmlayout.Parse("vm.star", []byte(text))
		require.NoError(t, err)
		report, err := lint.Lint([]*ir.Module{m}, nil, l)
		require.NoError(t, err)
		for _, f := range report.Findings {
			if f.Rule == lint.VMLayout {
				all = append(all, f)
			}
		}
		return all
	}
	require.Empty(t, found(correct))
	require.GreaterOrEqual(t, len(mistakes), 19)
	for _, c := range mistakes {
		t.Run(c.name, func(t *testing.T) {
			require.Equal(t, 1, strings.Count(correct, c.from), c.from)
			all := found(strings.Replace(correct, c.from, c.to, 1))
			require.Len(t, all, 1, "%v", all)
			require.Contains(t, fmt.Sprintf("%s:%d: %s", all[0].File, all[0].Line, all[0].What), c.says)
			require.Equal(t, 2, all[0].More)
			require.Equal(t, lint.CannotResume, all[0].Severity)
		})
	}
}
