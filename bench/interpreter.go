package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/reframe/test/livetest"
)

const (
	kernelRounds = 3
	largeRounds  = 15
	largeLines   = 100_000
)

// kernels are the programs of testdata/kernels.
var kernels = []string{"loop", "memory", "float", "calls"}

// interpreters compares whole programs, from the start of the tool to its end, with LLVM's own interpreter on the same text: kernels, and the
// programs of the fidelity suite that LLVM's interpreter can run. It measures the processor time of all threads.
func (b *bench) interpreters() {
	b.section("Programs in the interpreter (clang-19 -O1), processor time of %d runs", kernelRounds)
	lli := livetest.LLVM(b, 19, "lli")
	var rows []row
	measure := func(name, module string, stdin []byte, args ...string) {
		var want bytes.Buffer
		_, text := b.startFed(bytes.NewReader(stdin), &want, livetest.ModuleBinary(b, 19, module), args...)
		require.NotEmpty(b, want.Bytes(), text)
		var theirs, ours times
		run := func(into *times, tool string, flags ...string) {
			var out bytes.Buffer
			o, text := b.startFed(bytes.NewReader(stdin), &out, tool, slices.Concat(flags, []string{module}, args)...)
			require.True(b, bytes.Equal(inOrder(want.Bytes()), inOrder(out.Bytes())), "%s prints something else: %s", name, text)
			into.add(o.cpu)
		}
		interleave(kernelRounds,
			func() { run(&theirs, lli, "-jit-kind=mcjit", "-force-interpreter") },
			func() { run(&ours, b.reframe, "run") },
		)
		r := against(name, "lli-19 -force-interpreter", theirs, ours)
		r.target = "at most 0.1: " + verdict(10*ours.median() <= theirs.median())
		rows = append(rows, r)
	}
	for _, name := range kernels {
		source, err := filepath.Abs(filepath.Join("bench", "testdata", "kernels", name+".c"))
		require.NoError(b, err)
		measure(name, livetest.CModule(b, 19, []string{"-O1", "-ffp-contract=off"}, source), nil)
	}
	for _, p := range programs {
		var stdin []byte
		if p.fed {
			stdin = b.input()
		}
		measure(p.name, b.programModule(p), stdin, p.args...)
	}
	b.print(rows...)
}

// inOrder sorts lines. Output of lli's interpreter may be in another order: it has its own printf, whose stream differs from that of puts, and clang
// replaces some calls of printf by puts.
func inOrder(text []byte) []byte {
	all := bytes.SplitAfter(text, []byte("\n"))
	slices.SortFunc(all, bytes.Compare)
	return bytes.Join(all, nil)
}

// largeModules measures how much a large module adds to the time until a frame runs: the whole command with the program's own module, and with one
// that has additional functions of a hundred thousand lines.
func (b *bench) largeModules() {
	b.section("resume with a module of %d lines, start to end of the tool, %d runs", largeLines, largeRounds)
	p := livetest.Lli(b, 19, "deoptimize.ll", "mcjit")
	defer p.Kill()
	layout := livetest.Testdata(b, "programs", "deoptimize.layout.json")
	large := b.largeModule(p.IR)
	var small, big times
	run := func(into *times, module string) {
		o, text := b.start(b.reframe, "resume", "-p", fmt.Sprint(p.PID), "--ir", module, "--layout", layout)
		require.Contains(b, string(o.output), "332833500", text)
		into.add(o.wall)
	}
	interleave(largeRounds, func() { run(&small, p.IR) }, func() { run(&big, large) })
	added := row{what: "added by the lines", peer: "the module's own lines", theirs: spread(small), ours: spread(big), ratio: ratio(big.median(), small.median())}
	more := big.median() - small.median()
	added.target = fmt.Sprintf("at most 5 ms more: %s more, %s", duration(more), verdict(more <= 5*time.Millisecond))
	b.print(added)
}

// largeModule writes the module followed by other functions, and returns its path.
func (b *bench) largeModule(module string) string {
	text, err := os.ReadFile(module)
	require.NoError(b, err)
	var large strings.Builder
	large.Write(text)
	for lines, k := strings.Count(string(text), "\n"), 0; lines < largeLines; k++ {
		fmt.Fprintf(&large, "define i64 @other%d(i64 %%n, ptr %%p) {\nentry:\n  br label %%loop\nloop:\n", k)
		large.WriteString("  %i = phi i64 [ 0, %entry ], [ %next, %loop ]\n")
		for j := range 20 {
			fmt.Fprintf(&large, "  %%q%d = getelementptr inbounds i64, ptr %%p, i64 %d\n  %%v%d = load i64, ptr %%q%d, align 8\n  %%s%d = add nsw i64 %%v%d, %%i\n  store i64 %%s%d, ptr %%q%d, align 8\n", j, j, j, j, j, j, j, j)
		}
		large.WriteString("  %next = add nuw i64 %i, 1\n  %more = icmp ult i64 %next, %n\n  br i1 %more, label %loop, label %end\nend:\n  ret i64 %next\n}\n\n")
		lines += 92
	}
	path := filepath.Join(b.TempDir(), "large.ll")
	require.NoError(b, os.WriteFile(path, []byte(large.String()), 0o600))
	return path
}
