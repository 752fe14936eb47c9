package cfi

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/internal/machine"
	"example.com/reframe/test/livetest"
)

// orders returns all ordered selections of at most most names.
func orders(names []string, most int) [][]string {
	all := [][]string{nil}
	for from := 0; most > 0; most-- {
		to := len(all)
		for _, order := range all[from:to] {
			for _, name := range names {
				if !strings.Contains(strings.Join(order, " "), name) {
					all = append(all, append(order[:len(order):len(order)], name))
				}
			}
		}
		from = to
	}
	return all
}

// pushes returns the assembly of a function that pushes registers in any order, also in one that no compiler uses, and reserves size bytes. The
// function has CFI, from which assemblers make compact unwind.
func pushes(name string, frame bool, order []string, size int) string {
	var b strings.Builder
	fmt.Fprintf(&b, ".globl %[1]s\n.p2align 4\n%[1]s:\n.cfi_startproc\n", name)
	depth := 8
	if frame {
		depth = 16
		b.WriteString("pushq %rbp\n.cfi_def_cfa_offset 16\n.cfi_offset %rbp, -16\nmovq %rsp, %rbp\n.cfi_def_cfa_register %rbp\n")
	}
	var saved []string
	for _, reg := range order {
		depth += 8
		fmt.Fprintf(&b, "pushq %%%s\n", reg)
		if !frame {
			fmt.Fprintf(&b, ".cfi_def_cfa_offset %d\n", depth)
		}
		saved = append(saved, fmt.Sprintf(".cfi_offset %%%s, %d\n", reg, -depth))
	}
	if size > 0 {
		fmt.Fprintf(&b, "subq $%d, %%rsp\n", size)
		if !frame {
			fmt.Fprintf(&b, ".cfi_def_cfa_offset %d\n", depth+size)
		}
	}
	for i := range saved { // write them in LLVM's order, by ascending address
		b.WriteString(saved[len(saved)-1-i])
	}
	b.WriteString("int3\nretq\n.cfi_endproc\n")
	return b.String()
}

// everyOrder returns assembly with a function for every order in which registers can be saved.
func everyOrder() string {
	var b strings.Builder
	names := []string{"rbx", "r12", "r13", "r14", "r15", "rbp"}
	sizes := []int{0, 8, 200, 1000, 1984, 2040, 5000, 1 << 20}
	for i, order := range orders(names, 6) {
		b.WriteString(pushes(fmt.Sprintf("_pushed%d", i), false, order, sizes[i%len(sizes)]))
	}
	for i, order := range orders(names[:5], 5) {
		b.WriteString(pushes(fmt.Sprintf("_framed%d", i), true, order, sizes[i%len(sizes)]))
	}
	return b.String() + ".subsections_via_symbols\n"
}

// assemble makes an object for macOS with llvm-mc of a release.
func assemble(t *testing.T, version int, triple, text string) string {
	t.Helper()
	out := filepath.Join(t.TempDir(), "assembled.o")
	livetest.Make(t, livetest.LLVM(t, version, "llvm-mc"), "-filetype=obj", "-triple="+triple, "-o", out, module(t, "text.s", text))
	return out
}

// TestCompactPermutations requires that every permutation of saved registers, as LLVM's assembler encodes it, agrees with __eh_frame.
func TestCompactPermutations(t *testing.T) {
	text := everyOrder()
	for _, version := range []int{14, 19, 22} {
		functions, sites := map[string]int{}, map[string]int{}
		m := openMachO(t, assemble(t, version, "x86_64-apple-macosx11", text))
		m.sameAtSites(t, functions, sites)
		encodings := map[uint32]bool{}
		for _, e := range m.compact.rows {
			if m.mode(&e) != "frame" {
				encodings[e.Encoding&(amd64Count|amd64Permutation)] = true
			}
		}
		require.Len(t, encodings, 6+30+120+360+720+720)
		t.Logf("LLVM %d: all agree; functions %v, sites %v", version, functions, sites)
	}
}

// TestPermutations requires that the rows of all permutations differ; LLVM's assembler makes only some of them.
func TestPermutations(t *testing.T) {
	for count, want := range []int{1, 6, 30, 120, 360, 720, 720} {
		seen := map[string]bool{}
		for n := range uint32(1024) {
			regs, ok := permutation(uint32(count), n)
			require.Equal(t, int(n) < want, ok, "%d of %d", n, count)
			if ok {
				require.Len(t, regs, count)
				seen[fmt.Sprint(regs)] = true
			}
		}
		require.Len(t, seen, want)
	}
	_, ok := permutation(7, 0)
	require.False(t, ok)
	regs, ok := permutation(3, 1*20+0*4+3)
	require.True(t, ok)
	require.Equal(t, []machine.DWARFReg{12, 3, 6}, regs, "r12; then the first of those left; then the last")
}
