package trace

import (
	"cmp"
	"fmt"
	"maps"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/deopt"
	"example.com/reframe/deopt/frame"
	"example.com/reframe/deopt/stackmap"
	"example.com/reframe/internal/llvm/ir"
	"example.com/reframe/internal/machine"
	"example.com/reframe/internal/machine/isa"
	"example.com/reframe/internal/machine/names"
	"example.com/reframe/ptrace"
	"example.com/reframe/test/frametest"
	"example.com/reframe/test/livetest"
)

// planned returns the places that a trace would watch in a running process, and its warnings.
func planned(t *testing.T, pid int, o Options) (list []TracepointRow, said []string) {
	t.Helper()
	target, err := ptrace.Survey(pid, ptrace.Options{})
	require.NoError(t, err)
	defer target.Close()
	o.Warn = func(text string) { said = append(said, text) }
	plan, err := Plan(target, o)
	if err != nil {
		said = append(said, err.Error())
	}
	for _, p := range plan {
		for _, x := range p.Exits {
			list = append(list, *x)
		}
	}
	return list, said
}

// sitePlace is the place of a breakpoint.
type sitePlace struct {
	function string
	offset   uint64
	record   uint64
}

func places(list []TracepointRow) (out []sitePlace) {
	for _, x := range list {
		out = append(out, sitePlace{x.Function, x.Offset, x.Record})
	}
	return out
}

var (
	relocated  = regexp.MustCompile(`(?m)^[0-9a-f]+ +[0-9a-f]+ R_X86_64_64 +[0-9a-f]+ (\S+)(?: \+ ([0-9a-f]+))?$`)
	mapLine    = regexp.MustCompile(`(?m)Function address: \d+, stack size: .*, callsite record count: (\d+)|Record ID: (\d+), instruction offset: (\d+)`)
	disasmLine = regexp.MustCompile(`(?m)^ *([0-9a-f]+):\s+(\S+)`)
	nmLine     = regexp.MustCompile(`(?m)^([0-9a-f]+) [tT] (\S+)$`)
)

// toolPlaces finds the sites of an object with one text section with LLVM's own tools: at the address of the record, or, if calls is set, at the
// call that ends there.
func toolPlaces(t *testing.T, path string, calls bool) []sitePlace {
	t.Helper()
	tool := func(name string, args ...string) string {
		out, err := exec.Command(livetest.LLVM(t, 19, name), append(args, path)...).Output()
		require.NoError(t, err)
		return string(out)
	}
	hex := func(text string) uint64 {
		if text == "" {
			return 0
		}
		n, err := strconv.ParseUint(text, 16, 64)
		require.NoError(t, err)
		return n
	}
	type named struct {
		addr uint64
		name string
	}
	var symbols []named
	for _, m := range nmLine.FindAllStringSubmatch(tool("llvm-nm"), -1) {
		symbols = append(symbols, named{hex(m[1]), m[2]})
	}
	slices.SortFunc(symbols, func(a, b named) int { return cmp.Compare(a.addr, b.addr) })
	_, section, found := strings.Cut(tool("llvm-readelf", "-r"), "'.rela.llvm_stackmaps'")
	require.True(t, found)
	section, _, _ = strings.Cut(section, "\n\n")
	var functions []uint64
	for _, m := range relocated.FindAllStringSubmatch(section, -1) {
		base := uint64(0)
		if i := slices.IndexFunc(symbols, func(s named) bool { return s.name == m[1] }); i >= 0 {
			base = symbols[i].addr
		} else {
			require.Equal(t, ".text", m[1])
		}
		functions = append(functions, base+hex(m[2]))
	}
	type instruction struct {
		start uint64
		name  string
	}
	endsAt := map[uint64]instruction{}
	var last instruction
	for _, m := range disasmLine.FindAllStringSubmatch(tool("llvm-objdump", "-d", "--no-show-raw-insn"), -1) {
		at := hex(m[1])
		endsAt[at] = last
		last = instruction{at, m[2]}
	}
	var counts []int
	var out []sitePlace
	of, left := -1, 0
	for _, m := range mapLine.FindAllStringSubmatch(tool("llvm-readobj", "--stackmap"), -1) {
		if m[1] != "" {
			n, err := strconv.Atoi(m[1])
			require.NoError(t, err)
			counts = append(counts, n)
			continue
		}
		for left == 0 {
			of++
			left = counts[of]
		}
		left--
		id, err := strconv.ParseUint(m[2], 10, 64)
		require.NoError(t, err)
		offset, err := strconv.ParseUint(m[3], 10, 64)
		require.NoError(t, err)
		at := functions[of] + offset
		if before := endsAt[at]; calls {
			require.True(t, strings.HasPrefix(before.name, "call"), "%s before %#x", before.name, at)
			at = before.start
		}
		i := slices.IndexFunc(symbols, func(s named) bool { return s.addr > at })
		if i < 0 {
			i = len(symbols)
		}
		out = append(out, sitePlace{symbols[i-1].name, at - symbols[i-1].addr, id})
	}
	require.NotEmpty(t, out)
	slices.SortFunc(out, func(a, b sitePlace) int {
		return cmp.Or(cmp.Compare(a.function, b.function), cmp.Compare(a.offset, b.offset), cmp.Compare(a.record, b.record))
	})
	return out
}

// TestTracepointsAgainstLLVM requires the breakpoint of a stackmap and a patchpoint at the record's address, and that of a statepoint and a
// deoptimize call on the call that ends there, with and without the module.
func TestTracepointsAgainstLLVM(t *testing.T) {
	livetest.Slow(t)
	all := map[string]bool{"tick.ll": false, "patch.ll": false, "memory.ll": false, "recursion.ll": false,
		"floats.ll": false, "state.ll": true, "guards.ll": true}
	var turns livetest.Turns
	for _, program := range slices.Sorted(maps.Keys(all)) {
		calls := all[program]
		for _, version := range []int{14, 19, 22} {
			for _, level := range []string{"-O0", "-O2"} {
				if turns.Out(5) {
					continue
				}
				t.Run(fmt.Sprintf("%s LLVM %d %s", program, version, level), func(t *testing.T) {
					object := livetest.PICObject(t, version, program, level)
					p, _ := livetest.ObjectHost(t, object, livetest.ObjectHostOptions{})
					want := toolPlaces(t, object, calls)
					for _, given := range []bool{false, true} {
						var o Options
						if given {
							m, err := ir.ParseFile(livetest.IR(t, version, program))
							require.NoError(t, err)
							o.Modules = []*ir.Module{m}
						}
						list, said := planned(t, p.PID, o)
						require.Empty(t, said)
						got := places(list)
						slices.SortFunc(got, func(a, b sitePlace) int {
							return cmp.Or(cmp.Compare(a.function, b.function), cmp.Compare(a.offset, b.offset), cmp.Compare(a.record, b.record))
						})
						require.Equal(t, want, got)
						for _, x := range list {
							require.Empty(t, x.Note)
							require.Equal(t, frame.Before, x.Moment)
							if given {
								require.NotEqual(t, deopt.UnknownSite, x.Site)
							}
							require.Equal(t, calls, x.Site == "statepoint" || x.Site == "deoptimize")
						}
					}
				})
			}
		}
	}
}

// TestTracepointKinds requires the kinds of the sites in code that lli compiled, with the module and without.
func TestTracepointKinds(t *testing.T) {
	type site struct {
		function     string
		record       uint64
		alone, given string // the kind, without the module and with it
	}
	for program, want := range map[string][]site{
		"deoptimize.ll":  {{"sum_opt", 2882400000, "statepoint", "deoptimize"}},
		"jit_sp.ll":      {{"f", 2882400000, "statepoint", "statepoint"}},
		"jit_pp.ll":      {{"work", 2001, "patchpoint", "patchpoint"}, {"work", 2002, "unknown", "stackmap"}},
		"false_match.ll": {{"work", 77, "patchpoint", "patchpoint"}},
		"stop_at.ll":     {{"work", 3001, "unknown", "stackmap"}},
		"chain.ll":       {{"f", 2, "statepoint", "statepoint"}, {"f", 1, "statepoint", "statepoint"}, {"main", 3, "statepoint", "statepoint"}},
	} {
		for _, kind := range []string{"mcjit", "orc"} {
			t.Run(program+" "+kind, func(t *testing.T) {
				p := livetest.Lli(t, 19, program, kind)
				if kind == "orc" && (program == "stop_at.ll" || program == "jit_pp.ll") {
					kind = "" // as below
				}
				alone, said := planned(t, p.PID, Options{})
				require.Empty(t, said)
				given, said := planned(t, p.PID, Options{Options: frametest.Known(t, p)})
				require.Empty(t, said)
				require.Len(t, alone, len(want))
				require.Len(t, given, len(want))
				for n, w := range want {
					require.Equal(t, w, site{alone[n].Function, alone[n].Record, alone[n].Site, given[n].Site})
					require.Equal(t, alone[n].Offset, given[n].Offset)
				}
			})
		}
	}
}

// TestTracepointsAgainstGDB requires that gdb finds a call at each breakpoint, and the return addresses of pending frames after these calls.
func TestTracepointsAgainstGDB(t *testing.T) {
	p := livetest.Lli(t, 19, "chain.ll", "mcjit")
	target, err := ptrace.Survey(p.PID, ptrace.Options{})
	require.NoError(t, err)
	defer target.Close()
	list, err := Plan(target, Options{Warn: func(text string) { require.Empty(t, text) }})
	require.NoError(t, err)
	var commands []string
	for _, x := range list {
		if x.Exits != nil {
			commands = append(commands, "x/2i "+string(x.Address))
		}
	}
	answer := livetest.GDB(t, p.PID, append(commands, "bt")...)
	lines := regexp.MustCompile(`(?m)^ +(0x[0-9a-f]+) <[^>]*>:\s+(\S+)`).FindAllStringSubmatch(answer, -1)
	require.Len(t, lines, 6, answer)
	returns := map[string]bool{}
	for n := 0; n < len(lines); n += 2 {
		require.Equal(t, "call", lines[n][2])
		returns[lines[n+1][1]] = true
	}
	waiting := map[string]bool{}
	for _, m := range regexp.MustCompile(`(?m)^#\d+ +(0x[0-9a-f]+) in (f|main) \(\)`).FindAllStringSubmatch(answer, -1) {
		waiting["0x"+strings.TrimLeft(m[1][2:], "0")] = true
		if m[2] == "main" { // lli also has a main
			break
		}
	}
	require.Equal(t, waiting, returns)
}

func TestExitFilter(t *testing.T) {
	object := livetest.PICObject(t, 19, "patch.ll", "-O2")
	p, _ := livetest.ObjectHost(t, object, livetest.ObjectHostOptions{})
	for name, c := range map[string]struct {
		filter ExitFilter
		want   []uint64
		said   string
	}{
		"none":            {ExitFilter{}, []uint64{21, 22}, ""},
		"record":          {ExitFilter{Records: []uint64{22}}, []uint64{22}, ""},
		"records":         {ExitFilter{Records: []uint64{22, 21, 5}}, []uint64{21, 22}, ""},
		"function":        {ExitFilter{Function: frametest.Pattern(names.Loose, "^sl")}, []uint64{21}, ""},
		"site":            {ExitFilter{Sites: []string{"patchpoint"}}, []uint64{22}, ""},
		"unknown sites":   {ExitFilter{Sites: []string{"unknown"}}, []uint64{21}, ""},
		"all at once":     {ExitFilter{Records: []uint64{21}, Function: frametest.Pattern(names.Loose, "called")}, nil, "no record is selected (2 known)"},
		"no such record":  {ExitFilter{Records: []uint64{7}}, nil, "no record is selected (2 known)"},
		"no such site":    {ExitFilter{Sites: []string{"deoptimize"}}, nil, "no record is selected (2 known)"},
		"no such pattern": {ExitFilter{Function: frametest.Pattern(names.Loose, "^nothing$")}, nil, "no record is selected (2 known)"},
	} {
		t.Run(name, func(t *testing.T) {
			list, said := planned(t, p.PID, Options{ExitFilter: c.filter})
			var got []uint64
			for _, x := range list {
				got = append(got, x.Record)
			}
			slices.Sort(got)
			require.Equal(t, c.want, got)
			if c.said == "" {
				require.Empty(t, said)
			} else {
				require.Len(t, said, 1)
				require.Contains(t, said[0], c.said)
			}
		})
	}
}

// movedRecord returns a copy of an object with one record whose offset is changed.
func movedRecord(t *testing.T, path string, by int) string {
	t.Helper()
	return frametest.Remapped(t, path, func(b *stackmap.Blob) { b.Functions[0].Records[0].Offset += uint32(by) })
}

// TestNoBreakpointInsideAnInstruction requires that no breakpoint is set inside an instruction, where it would change the code.
func TestNoBreakpointInsideAnInstruction(t *testing.T) {
	object := livetest.PICObject(t, 19, "tick.ll", "-O2")
	for by, want := range map[int]string{
		1:     "1 record skipped: the address is inside of an instruction",
		-1:    "1 record skipped: the address is inside of an instruction",
		4096:  "1 record skipped: the address is outside of the function",
		1e9:   "1 record skipped: the address is outside of the function",
		-4096: "1 record skipped: the address is outside of the function", // wraps around 32 bits
	} {
		p, begin := livetest.ObjectHost(t, movedRecord(t, object, by), livetest.ObjectHostOptions{})
		list, said := planned(t, p.PID, Options{})
		require.Empty(t, list)
		require.Len(t, said, 2)
		require.Contains(t, said[0], want)
		begin()
		require.NoError(t, p.Wait())
	}
}

func TestSweep(t *testing.T) {
	code := []byte{
		0x55,                         // push %rbp
		0xe8, 0x00, 0x00, 0x00, 0x00, // call
		0x48, 0x89, 0xc3, // mov %rax,%rbx
		0xff, 0xd0, // call *%rax
		0x06, // not an instruction in 64-bit mode
		0x90,
	}
	const base = 0x5000
	for _, c := range []struct {
		to     machine.Addr
		inside bool
		call   machine.Addr
	}{
		{0, false, 0}, {1, false, 0}, {2, true, 0}, {5, true, 0}, {6, false, base + 1}, {8, true, 0}, {9, false, 0},
		{11, false, base + 9}, {12, false, 0}, {13, false, 0},
	} {
		s := sweep{text: isa.NewWindow(codeAt{base, code}, isa.Of(machine.AMD64)), at: base}
		inside, call := s.to(base + c.to)
		require.Equal(t, c.inside, inside, "+%d", c.to)
		require.Equal(t, c.call, call, "+%d", c.to)
	}
}

// codeAt is memory that holds code followed by invalid bytes.
type codeAt struct {
	base machine.Addr
	code []byte
}

// ReadMemory implements [machine.Memory].
func (m codeAt) ReadMemory(p []byte, addr machine.Addr) error {
	for i := range p {
		p[i] = 0x06
		if at := uint64(addr) + uint64(i) - uint64(m.base); at < uint64(len(m.code)) {
			p[i] = m.code[at]
		}
	}
	return nil
}
