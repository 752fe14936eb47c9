package main

import (
	"regexp"
	"slices"
	"strings"
)

// standIns are functions that replace intrinsics which LLVM's interpreter does not support. T stands for a type, which is W bits wide.
var standIns = map[string]struct{ params, body string }{
	"umin":     {"T %a, T %b", compared("ult")},
	"umax":     {"T %a, T %b", compared("ugt")},
	"smin":     {"T %a, T %b", compared("slt")},
	"smax":     {"T %a, T %b", compared("sgt")},
	"usub.sat": {"T %a, T %b", "%c = icmp ult T %a, %b\n  %d = sub T %a, %b\n  %r = select i1 %c, T 0, T %d"},
	"abs":      {"T %a, i1 %b", "%c = icmp slt T %a, 0\n  %d = sub T 0, %a\n  %r = select i1 %c, T %d, T %a"},
	"fshl": {"T %a, T %b, T %c", `%by = urem T %c, W
  %none = icmp eq T %by, 0
  %back = sub T W, %by
  %right = urem T %back, W
  %high = shl T %a, %by
  %low = lshr T %b, %right
  %both = or T %high, %low
  %r = select i1 %none, T %a, T %both`},
}

func compared(predicate string) string {
	return "%c = icmp " + predicate + " T %a, %b\n  %r = select i1 %c, T %a, T %b"
}

var (
	intrinsicName = regexp.MustCompile(`@llvm\.([a-z.]+)\.i([0-9]+)\(`)
	intrinsicType = regexp.MustCompile(`\b[TW]\b`)
)

// withoutIntrinsics replaces calls of intrinsics by calls of functions. Both interpreters get the same text.
func withoutIntrinsics(module string) string {
	var lines, used []string
	for line := range strings.Lines(module) {
		m := intrinsicName.FindStringSubmatch(line)
		if m == nil || standIns[m[1]].body == "" {
			lines = append(lines, line)
			continue
		}
		if !strings.HasPrefix(line, "declare ") {
			lines = append(lines, strings.Replace(line, m[0], "@standin."+m[1]+".i"+m[2]+"(", 1))
			continue
		}
		f := standIns[m[1]]
		text := "define internal T @standin." + m[1] + ".T(" + f.params + ") {\n  " + f.body + "\n  ret T %r\n}\n"
		used = append(used, intrinsicType.ReplaceAllStringFunc(text, func(s string) string {
			if s == "W" {
				return m[2]
			}
			return "i" + m[2]
		}))
	}
	return strings.Join(slices.Concat(lines, used), "")
}
