package abi

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/internal/machine"
	"example.com/reframe/test/livetest"
)

// TestConventionsAreLLVMs requires LLVM's tables: a function that changes all registers saves those that its convention preserves, according to its CFI.
// Registers that are preserved only with some features are ignored.
func TestConventionsAreLLVMs(t *testing.T) {
	general := []string{"rax", "rdx", "rcx", "rbx", "rsi", "rdi", "rbp", "r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15"}
	var all []string
	for _, r := range general {
		all = append(all, "~{"+r+"}")
	}
	for n := range 16 {
		all = append(all, fmt.Sprintf("~{xmm%d}", n))
	}
	attributes := []string{`nounwind`, `"target-features"="+avx"`, `"target-features"="+avx512f"`}
	saved := regexp.MustCompile(`\.cfi_offset %(\w+)`)
	for _, version := range []int{14, 16, 19, 22} {
		names := []string{"ccc", "fastcc", "swiftcc", "tailcc", "preserve_mostcc", "preserve_allcc", "coldcc", "anyregcc", "x86_regcallcc", "win64cc",
			"swifttailcc", "ghccc", "cxx_fast_tlscc", "intel_ocl_bicc", "x86_64_sysvcc", "x86_vectorcallcc"}
		if version < 19 {
			names = append(names, "hhvmcc") // later releases parse the name but do not support the convention
		} else {
			names = append(names, "preserve_nonecc")
		}
		var text strings.Builder
		text.WriteString("target triple = \"x86_64-pc-linux-gnu\"\n")
		for _, cc := range names {
			for n, a := range attributes {
				fmt.Fprintf(&text, "define %s void @%s.%d() uwtable %s {\n  call void asm sideeffect \"\", \"%s\"()\n  ret void\n}\n", cc, cc, n, a, strings.Join(all, ","))
			}
		}
		path := filepath.Join(t.TempDir(), "all.ll")
		require.NoError(t, os.WriteFile(path, []byte(text.String()), 0o600))
		assembly, err := exec.Command(livetest.LLVM(t, version, "llc"), path, "-o", "-").Output()
		require.NoError(t, err)
		keeps, functions := map[string][]string{}, map[string]int{}
		for _, function := range strings.Split(string(assembly), "# -- Begin function ")[1:] {
			title, _, _ := strings.Cut(strings.TrimSuffix(strings.Fields(function)[0], "@@0"), ".")
			var list []string
			for _, m := range saved.FindAllStringSubmatch(function, -1) {
				if functions[title] == 0 || slices.Contains(keeps[title], m[1]) {
					list = append(list, m[1])
				}
			}
			keeps[title], functions[title] = list, functions[title]+1
		}
		for _, cc := range names {
			require.Equal(t, len(attributes), functions[cc], "LLVM %d, %s", version, cc)
			var want []string
			c := Conventions[cc]
			for reg := dwRAX; reg <= dwR15; reg++ {
				if reg != dwRSP && !slices.Contains(c.loses, reg) && (machine.AMD64.Preserved(reg) || slices.Contains(c.keeps, reg)) {
					want = append(want, machine.AMD64.RegisterName(reg))
				}
			}
			for _, reg := range c.vectors {
				want = append(want, machine.AMD64.RegisterName(reg))
			}
			require.ElementsMatch(t, keeps[cc], want, "LLVM %d, %s", version, cc)
		}
	}
}

// TestConventionNumbersAreLLVMs requires that LLVM prints the name of each convention for its number.
func TestConventionNumbersAreLLVMs(t *testing.T) {
	var text strings.Builder
	want := map[string]string{}
	for number, is := range numbered {
		fmt.Fprintf(&text, "declare cc %d void @f%d()\n", number, number)
		name := is.name + " "
		switch number {
		case 0: // LLVM does not print the C convention
			name = ""
		case 11, 21: // HiPE's has no name; preserve_none is newer than LLVM 16
			name = fmt.Sprintf("cc%d ", number)
		}
		want[fmt.Sprintf("@f%d()", number)] = name
	}
	cmd := exec.Command(livetest.LLVM(t, 16, "opt"), "-S")
	cmd.Stdin = strings.NewReader(text.String())
	out, err := cmd.Output()
	require.NoError(t, err)
	got := map[string]string{}
	for _, m := range regexp.MustCompile(`(?m)^declare (.*)void (@.*)$`).FindAllStringSubmatch(string(out), -1) {
		got[m[2]] = m[1]
	}
	require.Equal(t, want, got)
	require.True(t, InAnyRegisters("anyregcc") && InAnyRegisters("cc 13") && !InAnyRegisters("") && !InAnyRegisters("cc 12"))
}
