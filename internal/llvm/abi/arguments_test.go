package abi

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/internal/llvm/ir"
	"example.com/reframe/internal/machine"
	"example.com/reframe/test/livetest"
)

// TestArgumentAreaIsLLVMs requires that the area is the one that llc assigns to the arguments: the greatest end of its fixed stack objects in any release.
func TestArgumentAreaIsLLVMs(t *testing.T) {
	livetest.Slow(t)
	random := rand.New(rand.NewPCG(18, 8))
	types := []string{"i1", "i8", "i16", "i32", "i64", "i64", "i64", "ptr", "ptr", "i128", "float", "double", "double", "half", "fp128", "<4 x i32>", "<2 x double>", "<8 x i8>",
		"[2 x i64]", "[3 x double]", "[2 x ptr]", "{ i64, double }", "{ ptr, i32, float }", "ptr byval({ i64, i64, i32 })", "ptr byval([5 x i8])"}
	for _, triple := range []string{"x86_64-pc-linux-gnu", "aarch64-unknown-linux-gnu"} {
		arch := map[string]*machine.Arch{"x86_64-pc-linux-gnu": machine.AMD64, "aarch64-unknown-linux-gnu": machine.ARM64}[triple]
		var text strings.Builder
		fmt.Fprintf(&text, "target triple = %q\n", triple)
		layout := map[*machine.Arch]string{
			machine.AMD64: "e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-f80:128-n8:16:32:64-S128",
			machine.ARM64: "e-m:e-i8:8:32-i16:16:32-i64:64-i128:128-n32:64-S128",
		}[arch]
		fmt.Fprintf(&text, "target datalayout = %q\n", layout)
		const functions = 400
		var signatures []string
		for n := range functions {
			var params []string
			for p := range random.IntN(16) {
				typ := types[random.IntN(len(types))]
				if arch == machine.AMD64 && random.IntN(20) == 0 {
					typ = "x86_fp80"
				}
				params = append(params, fmt.Sprintf("%s %%p%d", typ, p))
			}
			signatures = append(signatures, strings.Join(params, ", "))
			fmt.Fprintf(&text, "define void @f%d(%s) {\n  ret void\n}\n", n, signatures[n])
		}
		path := filepath.Join(t.TempDir(), "all.ll")
		require.NoError(t, os.WriteFile(path, []byte(text.String()), 0o600))
		m, err := ir.ParseFile(path)
		require.NoError(t, err)
		most := map[string]uint64{}
		for _, version := range []int{14, 16, 19, 22} {
			args := []string{path, "-stop-after=finalize-isel", "-o", "-"}
			if version == 14 {
				args = append(args, "-opaque-pointers")
			}
			out, err := exec.Command(livetest.LLVM(t, version, "llc"), args...).Output()
			require.NoError(t, err)
			for name, end := range fixedStack(t, string(out)) {
				most[name] = max(most[name], end)
			}
		}
		require.Len(t, most, functions)
		for n, signature := range signatures {
			name := fmt.Sprintf("f%d", n)
			require.Equal(t, most[name], ArgumentArea(m.Func(name), arch), "%s: %s", triple, signature)
		}
	}
	require.Zero(t, ArgumentArea(nil, machine.ARM64))
}

// fixedStack returns the end of the fixed stack objects of each function, in whole words, from a module in llc's MIR.
func fixedStack(t *testing.T, mir string) map[string]uint64 {
	t.Helper()
	ends := map[string]uint64{}
	object := regexp.MustCompile(`offset: (-?\d+), size: (\d+)`)
	for _, f := range strings.Split(mir, "\nname:")[1:] {
		name := strings.Fields(f)[0]
		_, list, _ := strings.Cut(f, "\nfixedStack:")
		list, _, _ = strings.Cut(list, "\nstack:")
		ends[name] = 0
		for _, o := range object.FindAllStringSubmatch(list, -1) {
			offset, err := strconv.Atoi(o[1])
			require.NoError(t, err)
			size, err := strconv.Atoi(o[2])
			require.NoError(t, err)
			if end := offset + size; offset >= 0 {
				ends[name] = max(ends[name], uint64(end+7)&^7)
			}
		}
	}
	return ends
}

// TestInRegisters requires that on arm64 arguments are in registers while registers are left (AAPCS64, 6.8.2).
func TestInRegisters(t *testing.T) {
	for params, want := range map[string]bool{
		"":                                       true,
		"i64, i8, ptr, float, double, i1":        true,
		"i32, i32, i32, i32, i32, i32, i32, i32": true,
		"i32, i32, i32, i32, i32, i32, i32, i32, i32": false,
		"i128":        false,
		"<4 x i32>":   false,
		"{ i64, i8 }": false,
		"fp128":       false,
	} {
		m, err := ir.Parse("test.ll", []byte("declare fastcc void @f("+params+")"))
		require.NoError(t, err)
		require.Equal(t, want, InRegisters(m.Funcs[0]), params)
	}
}
