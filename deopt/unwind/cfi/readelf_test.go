package cfi

import (
	"bufio"
	"bytes"
	"fmt"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/internal/machine"
	"example.com/reframe/test/livetest"
)

// readelfRow is a row of readelf's --debug-dump=frames-interp by column, with the names of [machine.Arch].
type readelfRow map[string]string

var (
	// twice matches a rule with a register, which readelf prints twice: r1 (rdx).
	twice = regexp.MustCompile(`r\d+ \((\w+)\)`)
	// base matches a CFA rule with a register.
	base = regexp.MustCompile(`^(\w+)([+-]\d+)$`)
	// numbered matches a register whose name readelf does not know.
	numbered = regexp.MustCompile(`^r(\d+)$`)
)

// name converts readelf's name of a register to ours.
func name(arch *machine.Arch, s string) string {
	for _, reg := range arch.Registers() {
		if arch.RegisterName(reg) == s {
			return s
		}
	}
	if m := numbered.FindStringSubmatch(s); m != nil {
		n, _ := strconv.Atoi(m[1])
		return arch.RegisterName(machine.DWARFReg(n))
	}
	return s
}

// rule converts readelf's form of a rule to ours.
func rule(arch *machine.Arch, s string) string {
	if m := base.FindStringSubmatch(s); m != nil && m[1] != "c" && m[1] != "v" {
		return name(arch, m[1]) + m[2]
	}
	return name(arch, s)
}

// readelfFDE is an FDE as readelf interprets it.
type readelfFDE struct {
	start, end machine.Addr
	rows       map[machine.Addr]readelfRow
}

// readelfFDEs parses readelf's output for one section and calls each for every FDE.
func readelfFDEs(t *testing.T, arch *machine.Arch, path, section string, each func(readelfFDE)) {
	livetest.NeedsTools(t)
	cmd := exec.Command("readelf", "--wide", "--debug-dump=frames-interp", path)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	common := map[string]readelfRow{} // the initial row of each CIE, which is also that of an FDE without instructions
	var cie string
	var names []string
	var fde *readelfFDE
	flush := func() {
		if fde != nil {
			each(*fde)
		}
		fde = nil
	}
	known := map[string]string{}
	ours := func(in func(*machine.Arch, string) string, s string) string {
		if _, ok := known[s]; !ok {
			known[s] = in(arch, s)
		}
		return known[s]
	}
	here := false
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		words := strings.Fields(twice.ReplaceAllString(lines.Text(), "$1"))
		if strings.HasPrefix(lines.Text(), "Contents of the ") {
			flush()
			here = words[3] == section
			continue
		}
		switch {
		case !here:
		case len(words) > 3 && words[3] == "CIE":
			flush()
			cie = words[0]
		case len(words) > 3 && words[3] == "FDE":
			flush()
			from, to, ok := strings.Cut(strings.TrimPrefix(words[5], "pc="), "..")
			require.True(t, ok, lines.Text())
			fde = &readelfFDE{start: address(t, from), end: address(t, to), rows: map[machine.Addr]readelfRow{}}
			fde.rows[fde.start] = common[strings.TrimPrefix(words[4], "cie=")]
		case len(words) > 1 && words[0] == "LOC":
			names = words[1:]
			for i := range names {
				names[i] = ours(name, names[i])
			}
		case len(words) == len(names)+1 && len(words[0]) == 16:
			row := readelfRow{}
			for i, name := range names {
				row[name] = ours(rule, words[i+1])
			}
			if fde == nil {
				common[cie] = row
			} else {
				fde.rows[address(t, words[0])] = row
			}
		}
	}
	require.NoError(t, lines.Err())
	cmd.Wait() // ignore the status: for libc readelf exits with 1 without a message; the caller counts the FDEs
	flush()
}

// asReadelf prints a row as readelf would.
func asReadelf(arch *machine.Arch, row *Row) readelfRow {
	out := readelfRow{"CFA": "exp"}
	if row.CFA.Kind == CFARegister {
		out["CFA"] = fmt.Sprintf("%s%+d", arch.RegisterName(row.CFA.Register), row.CFA.Offset)
	}
	for reg, rule := range row.Rules() {
		var s string
		switch rule.Kind {
		case RuleUndefined:
			s = "u"
		case RuleSameValue:
			s = "s"
		case RuleOffset:
			s = fmt.Sprintf("c%+d", rule.Offset)
		case RuleValOffset:
			s = fmt.Sprintf("v%+d", rule.Offset)
		case RuleRegister:
			s = arch.RegisterName(rule.Register)
		case RuleExpression:
			s = "exp"
		case RuleValExpression:
			s = "vexp"
		}
		name := arch.RegisterName(reg)
		if reg == row.ReturnAddress {
			name = "ra"
		}
		out[name] = s
	}
	return out
}

// sameRules reports whether both rows have the same rules. readelf prints u both for undefined and for no rule.
func sameRules(want, got readelfRow) bool {
	for name, rule := range want {
		if have, ok := got[name]; ok && have != rule || !ok && rule != "u" {
			return false
		}
	}
	for name := range got {
		if _, ok := want[name]; !ok {
			return false
		}
	}
	return true
}

// TestReadelf compares every row of real images with readelf's.
func TestReadelf(t *testing.T) {
	livetest.NeedsTools(t)
	livetest.Slow(t)
	gdb, err := exec.LookPath("gdb")
	require.NoError(t, err)
	libc := strings.TrimSpace(string(run(t, livetest.Tool(t, "gcc"), "-print-file-name=libc.so.6")))
	libstdcxx := strings.TrimSpace(string(run(t, livetest.Tool(t, "gcc"), "-print-file-name=libstdc++.so.6")))
	object := filepath.Join(t.TempDir(), "shapes.o")
	livetest.Make(t, "llc-19", "-O2", "-relocation-model=pic", "-filetype=obj", "-o", object, "testdata/shapes.ll")
	for _, image := range []struct {
		name, path string
		sample     int // number n if every n-th FDE is compared
		least      int // minimum number of rows
	}{
		{"libc", libc, 1, 20_000},
		{"libstdc++", libstdcxx, 1, 20_000},
		{"gdb", gdb, 4, 20_000},
		{"libLLVM", newest(t, "/usr/lib/llvm-19/lib/libLLVM.so.*"), 32, 20_000},
		{"gcc -O0", shared(t, "-O0", "testdata/shapes.c"), 1, 15},
		{"gcc -O2", shared(t, "-O2", "testdata/shapes.c"), 1, 20},
		{"gcc -O2 with frame pointers", shared(t, "-O2", "-fno-omit-frame-pointer", "testdata/shapes.c"), 1, 20},
		{"rare instructions", shared(t, "testdata/rules.s"), 1, 20},
		{"llc-19", shared(t, object), 1, 15},
	} {
		t.Run(image.name, func(t *testing.T) {
			sections := sectionsOf(t, image.path, 0)
			table, err := NewTable(sections)
			require.NoError(t, err)
			require.NotNil(t, table.sections[0].search)
			seen, rows := compareImage(t, sections, image.path, ehFrame, image.sample)
			require.Equal(t, table.sections[0].search.count, seen, "FDEs")
			require.GreaterOrEqual(t, rows, image.least)
		})
	}
}

// compareImage compares the rows of a sample of the FDEs of one section with readelf's, and returns the numbers of FDEs and of compared rows.
func compareImage(t *testing.T, sections Sections, path, section string, sample int) (seen, rows int) {
	table, err := NewTable(sections)
	require.NoError(t, err)
	readelfFDEs(t, sections.Arch, path, section, func(want readelfFDE) {
		if seen++; seen%sample == 0 && want.start != want.end {
			rows += compareFDE(t, table, sections.Arch, want, section)
		}
	})
	t.Logf("%d FDEs, %d rows compared", seen, rows)
	return seen, rows
}

// compareFDE compares all rows of one FDE and returns their number.
func compareFDE(t *testing.T, table *Table, arch *machine.Arch, want readelfFDE, section string) int {
	f, err := table.Find(want.start)
	require.NoError(t, err, "%v", want.start)
	require.Equal(t, want.start, f.Start)
	require.Equal(t, want.end, f.End)
	require.Equal(t, section, f.Section)
	rows := 0
	for pc := f.Start; pc < f.End; rows++ {
		row, err := f.Rules(pc)
		require.NoError(t, err)
		expected, ok := want.rows[row.Start]
		require.True(t, ok, "%v: readelf has no row", row.Start)
		if got := asReadelf(arch, row); !sameRules(expected, got) {
			require.Equal(t, expected, got, "%v", row.Start)
		}
		require.Greater(t, row.End, pc)
		pc = row.End
	}
	for at := range want.rows {
		if at >= f.End {
			delete(want.rows, at)
		}
	}
	require.Len(t, want.rows, rows, "rows of the FDE at %v", f.Start)
	return rows
}

// TestIndexEqualsSearch looks up each function's first and last byte, and the
// byte past it, with and without .eh_frame_hdr.
func TestIndexEqualsSearch(t *testing.T) {
	libc := strings.TrimSpace(string(run(t, livetest.Tool(t, "gcc"), "-print-file-name=libc.so.6")))
	s := sectionsOf(t, libc, 0x7f0000000000)
	search, err := NewTable(s)
	require.NoError(t, err)
	s.EHFrameHdr = Section{}
	index, err := NewTable(s)
	require.NoError(t, err)
	_, err = index.Find(0)
	require.ErrorIs(t, err, ErrNoFDE)
	require.Len(t, index.sections[0].index.fdes, search.sections[0].search.count)
	for _, entry := range index.sections[0].index.fdes {
		for _, pc := range []machine.Addr{entry.Start, entry.End - 1, entry.End} {
			a, errA := search.Find(pc)
			b, errB := index.Find(pc)
			require.Equal(t, errA, errB, "%v", pc)
			require.Equal(t, a, b, "%v", pc)
		}
	}
}

// TestShortReads requires that lookups work with a reader that fails for unmapped addresses, like the memory of a process.
func TestShortReads(t *testing.T) {
	s := sectionsOf(t, shared(t, "-O2", "testdata/shapes.c"), 0)
	data := make([]byte, s.EHFrame.Size)
	_, err := s.EHFrame.Data.ReadAt(data, 0)
	require.NoError(t, err)
	s.EHFrameHdr = Section{}
	s.EHFrame.Data = bytes.NewReader(data[:len(data)/2])
	table, err := NewTable(s)
	require.NoError(t, err)
	_, err = table.Find(0x1000)
	var format *FormatError
	require.ErrorAs(t, err, &format)
	require.Equal(t, ".eh_frame", format.Section)
}
