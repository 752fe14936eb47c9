package lines

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/deopt/frame"
	"example.com/reframe/internal/machine"
	"example.com/reframe/internal/machine/object"
	"example.com/reframe/test/livetest"
)

// programs returns programs of several compilers, with all versions and forms of DWARF.
func programs(t testing.TB) map[string]string {
	const c, cc = "testdata/inline.c", "testdata/shapes.cc"
	return map[string]string{
		"gcc":                   livetest.Compiled(t, "gcc", c, "-O2", "-g"),
		"gcc, DWARF 3":          livetest.Compiled(t, "gcc", c, "-O2", "-gdwarf-3", "-gstrict-dwarf"),
		"gcc, DWARF 4, no PIE":  livetest.Compiled(t, "gcc", c, "-O2", "-gdwarf-4", "-no-pie"),
		"gcc, compressed":       livetest.Compiled(t, "gcc", c, "-O2", "-g", "-gz=zlib"),
		"gcc, 64-bit DWARF":     livetest.Compiled(t, "gcc", c, "-O2", "-g", "-gdwarf64"),
		"g++":                   livetest.Compiled(t, "g++", cc, "-O2", "-g"),
		"g++, LTO":              livetest.Compiled(t, "g++", cc, "-O2", "-g", "-flto", "-no-pie"),
		"g++ -O1, type units":   livetest.Compiled(t, "g++", cc, "-O1", "-gdwarf-4", "-fdebug-types-section"),
		"g++ -O0, DWARF 2":      livetest.Compiled(t, "g++", cc, "-O0", "-gdwarf-2"),
		"clang 14, DWARF 4":     livetest.Compiled(t, "clang-14", c, "-O2", "-gdwarf-4", "-gdwarf-aranges"),
		"clang 14, DWARF 5":     livetest.Compiled(t, "clang-14", c, "-O2", "-gdwarf-5", "-no-pie", "-gdwarf-aranges"),
		"clang 19, DWARF 4":     livetest.Compiled(t, "clang++-19", cc, "-O2", "-gdwarf-4", "-gdwarf-aranges"),
		"clang 19, DWARF 5":     livetest.Compiled(t, "clang++-19", cc, "-O2", "-gdwarf-5", "-gdwarf-aranges", "-ffunction-sections", "-Wl,--gc-sections"),
		"clang 19, type units":  livetest.Compiled(t, "clang++-19", cc, "-O1", "-gdwarf-5", "-gdwarf-aranges", "-fdebug-types-section"),
		"clang 19, lines alone": livetest.Compiled(t, "clang++-19", cc, "-O2", "-gline-tables-only", "-gdwarf-aranges"),
	}
}

// open opens an image with the addresses of its file.
func open(t testing.TB, name string) *object.Image {
	t.Helper()
	data, err := os.ReadFile(name)
	require.NoError(t, err)
	img, err := object.New(name, bytesAt(data), int64(len(data)))
	require.NoError(t, err)
	return img
}

// sample returns n addresses of an image's code, a few in each function.
func sample(img *object.Image, n int) (list []machine.Addr) {
	size := uint64(0)
	for _, s := range img.Code() {
		size += s.Size
	}
	step, at := max(1, size/uint64(n)), uint64(0)
	for _, s := range img.Code() {
		for ; at < s.Size; at += step {
			list = append(list, s.Loaded()+machine.Addr(at))
		}
		at -= s.Size
	}
	return list
}

// everything returns a budget that no test exhausts.
func everything() *Budget { return NewBudget(1 << 40) }

var elfutilsPlace = regexp.MustCompile(`^(.*?):(\d+)(?::(\d+))?$`)

// elfutils returns the results of eu-addr2line.
func elfutils(t *testing.T, program string, addrs []machine.Addr) (all [][]frame.Source) {
	cmd := exec.Command(livetest.Tool(t, "eu-addr2line"), "-a", "-i", "-f", "-e", program)
	cmd.Stdin = strings.NewReader(spelled(addrs))
	out, _ := cmd.Output() // exit status 1 means unknown addresses
	var lines []string
	for line := range strings.Lines(string(out)) {
		line = strings.TrimSuffix(line, "\n")
		if strings.HasPrefix(line, "0x") {
			all = append(all, nil)
			lines = nil
			continue
		}
		if lines = append(lines, line); len(lines)%2 == 1 {
			continue
		}
		name, _, inlined := strings.Cut(lines[len(lines)-2], " inlined at ")
		if name == "??" {
			name = ""
		}
		s := frame.Source{Function: name, Inlined: inlined}
		if m := elfutilsPlace.FindStringSubmatch(line); m != nil && m[1] != "??" {
			s.File = m[1]
			fmt.Sscan(m[2], &s.Line)
			fmt.Sscan(m[3], &s.Column)
		}
		all[len(all)-1] = append(all[len(all)-1], s)
	}
	return all
}

// gdb returns the results of gdb, which have no columns.
func gdb(t *testing.T, program string, addrs []machine.Addr) (all [][]frame.Source) {
	list := filepath.Join(t.TempDir(), "addrs")
	require.NoError(t, os.WriteFile(list, []byte(spelled(addrs)), 0o600))
	cmd := exec.Command(livetest.Tool(t, "gdb"), "-nx", "-batch", "-iex", "set auto-load off", "-iex", "set debuginfod enabled off",
		"-x", "testdata/places.py", program)
	cmd.Env = append(os.Environ(), "ADDRS="+list)
	out, err := cmd.Output()
	require.NoError(t, err)
	for line := range strings.Lines(string(out)) {
		var places [][3]any
		require.NoError(t, json.Unmarshal([]byte(line), &places), line)
		var chain []frame.Source
		for _, p := range places {
			chain = append(chain, frame.Source{Function: p[0].(string), File: p[1].(string), Line: int(p[2].(float64))})
		}
		all = append(all, chain)
	}
	return all
}

func spelled(addrs []machine.Addr) string {
	var b strings.Builder
	for _, a := range addrs {
		fmt.Fprintf(&b, "%#x\n", uint64(a))
	}
	return b.String()
}

// plain returns the part of a result that can be compared with a tool's: functions if both know one, without columns, and for elfutils without
// directories. For a function without a symbol, gdb constructs a name with scope and parameters.
func plain(list, other []frame.Source, columns bool) (out []frame.Source) {
	if len(list) == 1 && list[0].File == "" {
		return nil
	}
	for k, s := range list {
		s.Inlined = false
		if columns {
			s.File = path.Base(s.File)
		} else {
			s.Column = 0
		}
		mangled := strings.HasPrefix(s.Function, "_Z")
		switch {
		case k >= len(other), other[k].Function == "", mangled != strings.HasPrefix(other[k].Function, "_Z"):
			s.Function = ""
		case !mangled:
			s.Function = bare(s.Function)
		}
		out = append(out, s)
	}
	return out
}

// bare returns a function's name without its scope, template arguments and parameters.
func bare(name string) string {
	if name = strings.ReplaceAll(name, "(anonymous namespace)::", ""); strings.Contains(name, "operator") {
		return "operator"
	}
	name = name[:strings.IndexAny(name+"<", "<(")]
	return name[strings.LastIndexByte(name, ':')+1:]
}

// rowsTo returns the rows of the line table from the start of a sequence to an address.
func rowsTo(t *testing.T, r *Reader, addr machine.Addr) []row {
	u, err := r.unitOf(uint64(addr))
	if u == nil || err != nil {
		return nil
	}
	table, err := u.lineTable()
	require.NoError(t, err)
	for _, s := range table.sequences {
		if s.Contains(addr) {
			rows := table.rows[s.from:s.to]
			n := 0
			for n < len(rows) && rows[n].addr <= uint64(addr) {
				n++
			}
			return rows[:n]
		}
	}
	return nil
}

// mergedRow returns the line that gdb shows if it has dropped a row because the previous row has the same line. It is the line of a row with is_stmt
// at the address of the first of these rows.
func mergedRow(rows []row) int {
	k := len(rows) - 1
	for k > 0 && rows[k-1].line == rows[k].line && rows[k-1].file == rows[k].file {
		k--
	}
	for i := k; i >= 0 && rows[i].addr == rows[k].addr; i-- {
		if rows[i].stmt {
			return int(rows[i].line)
		}
	}
	return int(rows[k].line)
}

// These are reasons for differences from gdb or eu-addr2line.
const (
	anotherRow  = "eu-addr2line takes the last of several rows at one address; we and gdb, one where a debugger stops"
	noLine      = "gdb leaves rows of line 0 out and shows the line before"
	gdbIsOurs   = "gdb says what we say"
	merged      = "gdb leaves out a row of the same line as the one before, and then takes a row of that address"
	nestedBlock = "gdb has a function that is written inside of another in the block of that"
)

// differ returns the reason why a tool may have another result, or "".
func differ(t *testing.T, r *Reader, addr machine.Addr, ours, theirs []frame.Source) string {
	rows := rowsTo(t, r, addr)
	if len(rows) == 0 || len(ours) == 0 || len(theirs) == 0 {
		return ""
	}
	last := rows[len(rows)-1]
	again := append([]frame.Source{}, ours...)
	again[0].Line, again[0].Column, again[0].File = int(last.line), int(last.column), theirs[0].File
	if len(ours) == len(theirs) && !last.stmt && fmt.Sprint(again) == fmt.Sprint(theirs) {
		return anotherRow
	}
	again[0] = theirs[0]
	if len(ours) == len(theirs) && ours[0].Line == 0 && fmt.Sprint(again) == fmt.Sprint(theirs) {
		return noLine
	}
	if len(ours) == len(theirs) && fmt.Sprint(again) == fmt.Sprint(theirs) && mergedRow(rows) == theirs[0].Line {
		return merged
	}
	if len(ours) < len(theirs) && fmt.Sprint(ours) == fmt.Sprint(theirs[:len(ours)]) {
		return nestedBlock
	}
	return ""
}

func TestAgainstOthers(t *testing.T) {
	livetest.Slow(t)
	asked := 0
	for name, program := range programs(t) {
		t.Run(name, func(t *testing.T) {
			img := open(t, program)
			addrs := sample(img, livetest.Times(200, 700))
			asked += len(addrs)
			r := New(img, everything())
			gdbs, elfs := gdb(t, program, addrs), elfutils(t, program, addrs)
			require.Len(t, gdbs, len(addrs))
			require.Len(t, elfs, len(addrs))
			disagree, gdbAgrees := map[string]int{}, true
			for n, a := range addrs {
				got, err := r.At(a)
				require.NoError(t, err)
				agrees := func(tool string, theirs []frame.Source, columns bool) bool {
					ours, want := plain(got.Lines, theirs, columns), plain(theirs, got.Lines, columns)
					if fmt.Sprint(ours) == fmt.Sprint(want) {
						return true
					}
					why := differ(t, r, a, ours, want)
					if columns && why == "" && gdbAgrees {
						why = gdbIsOurs
					}
					if disagree[why]++; why == "" && disagree[why] < 4 {
						t.Errorf("%s: %v\nours   %+v\ntheirs %+v", tool, a, ours, want)
					}
					return why != ""
				}
				gdbAgrees = agrees("gdb", gdbs[n], false)
				agrees("eu-addr2line", elfs[n], true)
			}
			t.Log(len(addrs), disagree)
		})
	}
	t.Log(asked)
}

// run runs a tool in a directory.
func run(t *testing.T, dir, tool string, args ...string) {
	t.Helper()
	cmd := exec.Command(livetest.Tool(t, tool), args...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
}
