package cfi

import (
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/internal/machine"
	"example.com/reframe/test/livetest"
)

// dylib links an object with lld.
func dylib(t *testing.T, arch, object string) string {
	t.Helper()
	out := filepath.Join(t.TempDir(), "linked.dylib")
	run(t, livetest.Tool(t, "ld64.lld-19"), "-dylib", "-arch", arch, "-platform_version", "macos", "11.0", "11.0",
		"-undefined", "dynamic_lookup", "-o", out, object)
	return out
}

// objdumpEntry matches a line of llvm-objdump --unwind-info for a linked image; on a compressed page the encoding is numbered.
var objdumpEntry = regexp.MustCompile(`function offset=0x([0-9a-f]+), encoding(\[\d+\])?=0x([0-9a-f]+)`)

// functionsOf returns the addresses of functions by name.
func (m *machO) functionsOf(t *testing.T) map[string]machine.Addr {
	t.Helper()
	functions := map[string]machine.Addr{}
	for line := range strings.Lines(livetest.Printed(t, livetest.LLVM(t, 19, "llvm-nm"), "--defined-only", m.path)) {
		f := strings.Fields(line)
		if len(f) == 3 && f[1] == "T" {
			functions[f[2]] = hexAddr(t, f[0]) + m.moved
		}
	}
	return functions
}

func hexAddr(t *testing.T, s string) machine.Addr {
	t.Helper()
	v, err := strconv.ParseUint(s, 16, 64)
	require.NoError(t, err)
	return machine.Addr(v)
}

// machOFiles calls check with objects and their linked images; the first has more than 2000 functions, each with its own encoding.
func machOFiles(t *testing.T, check func(t *testing.T, object, linked *machO)) {
	arm64 := [][]string{nil, {"x19", "x20"}, {"x19", "x20", "d8", "d9"}, {"x27", "x28"}}
	objects := map[string]string{
		"x86_64 orders": assemble(t, 19, "x86_64-apple-macosx11", everyOrder()),
		"x86_64 frames": livetest.Object(t, 19, module(t, "frames.ll", framesModule("int3", subsets([]string{"rbx", "r12", "r13", "r14", "r15", "rbp"}, 6), "")),
			"-mtriple=x86_64-apple-macosx11"),
		"arm64 frames": livetest.Object(t, 19, module(t, "frames.ll", framesModule("brk #0x7b", arm64, `"frame-pointer"="all"`)),
			"-mtriple=arm64-apple-macosx11"),
		"arm64 plain": livetest.Object(t, 19, module(t, "frames.ll", framesModule("brk #0x7b", arm64, "")), "-mtriple=arm64-apple-macosx11"),
	}
	for name, path := range objects {
		t.Run(name, func(t *testing.T) {
			arch, _, _ := strings.Cut(name, " ")
			check(t, openMachO(t, path), openMachO(t, dylib(t, arch, path)))
		})
	}
}

// TestUnwindInfoAgainstObject requires that linking keeps the encoding of each function, and that its row stays equivalent.
func TestUnwindInfoAgainstObject(t *testing.T) {
	machOFiles(t, func(t *testing.T, object, linked *machO) {
		compared := map[string]int{}
		after := linked.functionsOf(t)
		for name, start := range object.functionsOf(t) {
			want, err := object.compact.Find(start)
			if err != nil { // LLVM writes no entry for a function without a frame, and lld writes one that refers to its FDE
				require.ErrorIs(t, err, ErrNoFDE)
				e, err := linked.compact.Find(after[name])
				require.NoError(t, err)
				fde, err := e.FDE(linked.table)
				require.NoError(t, err)
				require.Equal(t, after[name], fde.Start)
				compared["no frame"]++
				continue
			}
			got, err := linked.compact.Find(after[name])
			require.NoError(t, err, name)
			require.True(t, got.Start <= after[name] && after[name] < got.End)
			mode := object.mode(want)
			compared[mode]++
			if mode == "DWARF" {
				require.Equal(t, want.Encoding&compactMode, got.Encoding&compactMode, name)
				fde, err := got.FDE(linked.table)
				require.NoError(t, err, name)
				require.Equal(t, after[name], fde.Start, name)
				require.NotZero(t, got.Encoding&compactFDEOffset)
				require.Equal(t, int64(got.Encoding&compactFDEOffset), fde.Offset)
				continue
			}
			require.Equal(t, want.Encoding, got.Encoding, name)
			one, err := want.AtCalls(object.code)
			require.NoError(t, err, name)
			other, err := got.AtCalls(linked.code)
			require.NoError(t, err, name)
			require.Equal(t, one.CFA, other.CFA)
			require.Equal(t, one.columns, other.columns)
		}
		t.Logf("all agree: %v", compared)
	})
}

// TestUnwindInfoAgainstObjdump compares every entry with llvm-objdump's.
func TestUnwindInfoAgainstObjdump(t *testing.T) {
	kinds := map[string]int{}
	machOFiles(t, func(t *testing.T, object, linked *machO) {
		image := linked.image
		out := livetest.Printed(t, livetest.LLVM(t, 19, "llvm-objdump"), "--macho", "--unwind-info", linked.path)
		total := 0
		for page := range strings.SplitSeq(out, "Second level index[") {
			entries := objdumpEntry.FindAllStringSubmatch(page, -1)
			for _, f := range entries {
				e, err := linked.compact.Find(image + hexAddr(t, f[1]))
				require.NoError(t, err, f[0])
				require.Equal(t, image+hexAddr(t, f[1]), e.Start)
				require.Equal(t, hexAddr(t, f[3]), machine.Addr(e.Encoding))
				last, err := linked.compact.Find(e.End - 1)
				require.NoError(t, err)
				require.Equal(t, e, last)
				total++
			}
			if len(entries) > 0 && entries[0][2] != "" {
				kinds["compressed"]++
			} else if len(entries) > 0 {
				kinds["regular"]++
			}
		}
		require.NotZero(t, total)
		t.Logf("%d entries", total)

		functions := linked.functionsOf(t)
		first := slices.Min(slices.Collect(maps.Values(functions)))
		_, err := linked.compact.Find(first - 1)
		require.ErrorIs(t, err, ErrNoFDE)
		_, err = linked.compact.Find(image - 1)
		require.ErrorIs(t, err, ErrNoFDE)
		_, err = linked.compact.Find(linked.code.start + machine.Addr(len(linked.code.data)))
		require.ErrorIs(t, err, ErrNoFDE)
	})
	t.Logf("pages: %v", kinds)
	require.GreaterOrEqual(t, kinds["regular"], 2)
	require.GreaterOrEqual(t, kinds["compressed"], 2)
}

// objectRow matches an entry of an object in llvm-objdump --unwind-info.
var objectRow = regexp.MustCompile(`start:\s+0x([0-9a-f]+).*\s+length:\s+0x([0-9a-f]+)\s+compact encoding:\s+0x([0-9a-f]+)`)

// TestCompactAgainstObjdump compares every row of objects with llvm-objdump's.
func TestCompactAgainstObjdump(t *testing.T) {
	machOFiles(t, func(t *testing.T, object, _ *machO) {
		out := livetest.Printed(t, livetest.LLVM(t, 19, "llvm-objdump"), "--macho", "--unwind-info", object.path)
		rows := objectRow.FindAllStringSubmatch(out, -1)
		require.NotEmpty(t, rows)
		require.Len(t, object.compact.rows, len(rows))
		for _, f := range rows {
			start, length := hexAddr(t, f[1])+object.moved, hexAddr(t, f[2])
			e, err := object.compact.Find(start + length - 1)
			require.NoError(t, err)
			require.Equal(t, start, e.Start)
			require.Equal(t, start+length, e.End)
			require.Equal(t, hexAddr(t, f[3]), machine.Addr(e.Encoding))
		}
		t.Logf("%d rows", len(rows))
	})
}
