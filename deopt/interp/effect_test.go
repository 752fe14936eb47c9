package interp

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/test/livetest"
)

// TestEveryBuiltinHasAnEffect requires that every built-in function has exactly one effect.
func TestEveryBuiltinHasAnEffect(t *testing.T) {
	of := map[string]Effect{}
	for effect, names := range effectNames {
		for _, name := range strings.Fields(names) {
			base, all := strings.CutSuffix(name, "*")
			forms := []string{base}
			if all {
				forms = append(forms, base+"f")
			}
			for _, form := range forms {
				other, twice := of[form]
				require.False(t, twice, "%s is %v and %v", form, other, effect)
				of[form] = effect
				_, intrinsic := floatIntrinsics[strings.TrimPrefix(form, "llvm.")]
				require.True(t, libc[form] != nil || strings.HasPrefix(form, "llvm.") && intrinsic, form)
			}
		}
	}
	for _, name := range inOrder(libc) {
		require.Contains(t, effects, name)
	}
	for name, want := range map[string]Effect{
		"strlen": EffectNone, "_Znwm": EffectState, "??3@YAXPAX@Z": EffectState, "printf": EffectOutside, "sinf": EffectMath, "__memcpy_chk": EffectMemory,
		"fopen": EffectOutside, "no such function": EffectOutside,
	} {
		require.Equal(t, want, EffectOf(name), name)
	}
}

func inOrder(m map[string]Builtin) []string {
	var names []string
	for name := range m {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// TestEffectsAgreeWithLLVM requires that the effect of a C library function agrees with the memory attribute that LLVM infers for it (LangRef,
// "memory").
func TestEffectsAgreeWithLLVM(t *testing.T) {
	livetest.Slow(t)
	const headers = "#define _GNU_SOURCE\n#include <string.h>\n#include <stdlib.h>\n#include <math.h>\n#include <stdio.h>\n#include <ctype.h>\n" +
		"#include <time.h>\n#include <inttypes.h>\n#include <unistd.h>\n#include <sys/time.h>\n#include <malloc.h>\n"
	names := slices.DeleteFunc(inOrder(libc), func(n string) bool { return n[0] == '?' }) // not a C name
	path := filepath.Join(t.TempDir(), "names.c")
	undeclared := regexp.MustCompile(`undeclared identifier '(\w+)'`)
	var ir []byte
	for range 2 { // the first compilation reports the names that the headers do not declare; the second one omits them
		source := headers + "void *functions[] = {" + strings.Join(names, ",") + "};\n"
		require.NoError(t, os.WriteFile(path, []byte(source), 0o600))
		cmd := exec.Command(livetest.LLVM(t, 19, "clang"), "-w", "-O0", "-ferror-limit=0", "-S", "-emit-llvm", "-o", "-", path)
		var said strings.Builder
		cmd.Stderr = &said
		var err error
		if ir, err = cmd.Output(); err == nil {
			break
		}
		for _, m := range undeclared.FindAllStringSubmatch(said.String(), -1) {
			names = slices.DeleteFunc(names, func(n string) bool { return n == m[1] })
		}
	}
	opt := exec.Command(livetest.LLVM(t, 19, "opt"), "-passes=inferattrs", "-S")
	opt.Stdin = strings.NewReader(strings.ReplaceAll(string(ir), `"no-builtins"`, ""))
	out, err := opt.Output()
	require.NoError(t, err)
	memory := map[string]string{}
	for _, m := range regexp.MustCompile(`(?m)^attributes (#\d+) = .*?memory\(([^)]*)\)`).FindAllStringSubmatch(string(out), -1) {
		memory[m[1]] = m[2]
	}
	want := map[string][]Effect{
		"none": {EffectNone, EffectMath}, "argmem: read": {EffectNone}, "read": {EffectNone, EffectState},
		"argmem: write": {EffectMemory}, "argmem: readwrite": {EffectMemory},
		"write":                      {EffectMath},
		"inaccessiblemem: readwrite": {EffectState},
		"argmem: readwrite, inaccessiblemem: readwrite": {EffectState},
	}
	checked := 0
	for _, m := range regexp.MustCompile(`(?m)^declare .*@(\w+)\(.*\) (#\d+)$`).FindAllStringSubmatch(string(out), -1) {
		says, ok := memory[m[2]]
		// Skip functions without a memory attribute, and those that set errno according to LLVM.
		if !ok || slices.Contains([]string{"isascii", "toascii"}, m[1]) {
			continue
		}
		require.Contains(t, want, says, m[1])
		checked++
		require.Contains(t, want[says], EffectOf(m[1]), "%s: memory(%s)", m[1], says)
	}
	require.Greater(t, checked, 100)
	t.Logf("%d functions", checked)
}
