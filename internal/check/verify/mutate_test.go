package verify

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/deopt/stackmap"
	"example.com/reframe/internal/machine"
	"example.com/reframe/test/livetest"
)

// mutant is an unlinked object with one fault in its stack map. The other bytes are those that llc wrote.
type mutant struct {
	object   []byte // the file
	kind     mutation
	function string
	row      int // of the function in the stack map
	number   int // of the record among those of the function
	record   stackmap.RecordID
	location int // in the record
	with     int // the other location of a swap, or -1
	old, new string
}

func (m mutant) String() string {
	where := fmt.Sprintf("%s, record %d (id %d), location %d", m.function, m.number, m.record, m.location)
	if m.with >= 0 {
		where += fmt.Sprintf(" and %d", m.with)
	}
	return fmt.Sprintf("%s: %v: %s instead of %s", where, m.kind, m.new, m.old)
}

// mutation is a kind of change.
type mutation int

const (
	wrongRegister mutation = iota // of a Register, Direct or Indirect location
	wrongOffset                   // of a Direct or Indirect location
	wrongKind                     // Direct becomes Indirect, or the reverse
	wrongConstant                 // of a Constant, or of the table entry of a ConstantIndex
	wrongIndex                    // of a ConstantIndex
	swapped                       // two locations of a record
	mutations
)

func (m mutation) String() string {
	return [...]string{"register", "offset", "kind", "constant", "index", "swap"}[m]
}

// mutants returns all mutations of each location of an object that holds a value. It omits the three constants at the head of a statepoint. The same
// seed gives the same mutants in the same shuffled order. All mutants are different.
func mutants(t testing.TB, path string, seed uint64) []mutant {
	t.Helper()
	m := newMutator(t, path, seed)
	for row, f := range m.blob().Functions {
		for number, r := range f.Records {
			first := 0
			if _, ok := r.AsStatepoint(); ok {
				first = stackmap.StatepointHead
			}
			for location := first; location < len(r.Locations); location++ {
				for kind := range mutations {
					m.mutate(kind, row, number, location, first)
				}
			}
		}
	}
	m.rng.Shuffle(len(m.made), func(i, j int) { m.made[i], m.made[j] = m.made[j], m.made[i] })
	return m.made
}

// mutator makes the mutants of one object.
type mutator struct {
	t         testing.TB
	rng       *rand.Rand
	file      []byte
	start     int    // of the section in file
	section   []byte // part of file
	functions []string
	seen      map[string]bool
	made      []mutant
}

func newMutator(t testing.TB, path string, seed uint64) *mutator {
	t.Helper()
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	f, err := elf.NewFile(bytes.NewReader(data))
	require.NoError(t, err)
	s := f.Section(".llvm_stackmaps")
	require.NotNil(t, s, path)
	section := data[s.Offset : s.Offset+s.Size]
	return &mutator{
		t:         t,
		rng:       rand.New(rand.NewPCG(seed, uint64(len(data)))),
		file:      data,
		start:     int(s.Offset),
		section:   section,
		functions: relocatedFunctions(t, f, parseMap(t, section)),
		seen:      map[string]bool{string(section): true},
	}
}

// relocatedFunctions returns the names of the functions of an object's stack map: their addresses are relocations.
func relocatedFunctions(t testing.TB, f *elf.File, m *stackmap.Map) []string {
	t.Helper()
	symbols, err := f.Symbols()
	require.NoError(t, err)
	rows, err := f.Section(".rela.llvm_stackmaps").Data()
	require.NoError(t, err)
	at := make(map[int64]string)
	for ; len(rows) >= 24; rows = rows[24:] { // Elf64_Rela: offset, info, addend
		index := binary.LittleEndian.Uint64(rows[8:]) >> 32
		at[int64(binary.LittleEndian.Uint64(rows))] = symbols[index-1].Name // Symbols omits the null symbol
	}
	var names []string
	for i := range m.Functions {
		name := at[m.FunctionPos(&m.Functions[i])]
		require.NotEmpty(t, name)
		names = append(names, name)
	}
	return names
}

func parseMap(t testing.TB, section []byte) *stackmap.Map {
	t.Helper()
	s, err := stackmap.Parse(section, stackmap.Options{Order: binary.LittleEndian, Dialect: stackmap.V3})
	require.NoError(t, err)
	require.Len(t, s.Maps, 1)
	return s.Maps[0]
}

// blob returns a copy of the object's stack map for changes.
func (m *mutator) blob() *stackmap.Blob { return parseMap(m.t, m.section).Blob() }

// mutate adds the mutant of that kind, if the location has one. For a swap, the other location is at index first or later.
func (m *mutator) mutate(kind mutation, row, number, location, first int) {
	m.t.Helper()
	blob := m.blob()
	r := &blob.Functions[row].Records[number]
	l := &r.Locations[location]
	out := mutant{
		kind: kind, function: m.functions[row], row: row, number: number, record: r.ID,
		location: location, with: -1, old: spell(blob, *l),
	}
	inMemory := l.Kind == stackmap.Direct || l.Kind == stackmap.Indirect
	switch {
	case kind == wrongRegister && (inMemory || l.Kind == stackmap.Register):
		l.Reg = m.wrongRegister(l.Reg)
	case kind == wrongOffset && inMemory:
		l.Offset += m.otherOf(-16, -8, -4, -1, 1, 4, 8, 16)
	case kind == wrongKind && inMemory:
		l.Kind = stackmap.Direct + stackmap.Indirect - l.Kind
	case kind == wrongConstant && l.Kind == stackmap.Constant:
		l.Offset += m.otherOf(-256, -2, -1, 1, 2, 256)
	case kind == wrongConstant && l.Kind == stackmap.ConstantIndex:
		blob.Constants[l.Offset] ^= 1 << m.rng.IntN(64)
	case kind == wrongIndex && l.Kind == stackmap.ConstantIndex && len(blob.Constants) > 1:
		l.Offset = (l.Offset + 1) % int32(len(blob.Constants))
	case kind == swapped:
		var others []int
		for i := first; i < len(r.Locations); i++ {
			if r.Locations[i] != *l {
				others = append(others, i)
			}
		}
		if len(others) == 0 {
			return
		}
		out.with = others[m.rng.IntN(len(others))]
		other := &r.Locations[out.with]
		*l, *other = *other, *l
	default:
		return
	}
	out.new = spell(blob, *l)
	m.add(out, blob)
}

// wrongRegister returns another register of the same kind: rax … r15, or xmm0 … xmm15.
func (m *mutator) wrongRegister(r machine.DWARFReg) machine.DWARFReg {
	const first, count = 17, 16 // xmm0; the general registers have the numbers below 16
	if r >= first {
		return first + (r-first+machine.DWARFReg(1+m.rng.IntN(count-1)))%count
	}
	return (r + machine.DWARFReg(1+m.rng.IntN(count-1))) % count
}

func (m *mutator) otherOf(choices ...int32) int32 { return choices[m.rng.IntN(len(choices))] }

// add writes the changed stack map into a copy of the object.
func (m *mutator) add(out mutant, blob *stackmap.Blob) {
	m.t.Helper()
	section, err := stackmap.AppendBlob(nil, binary.LittleEndian, blob)
	require.NoError(m.t, err)
	require.Len(m.t, section, len(m.section))
	if m.seen[string(section)] {
		return
	}
	m.seen[string(section)] = true
	out.object = slices.Clone(m.file)
	copy(out.object[m.start:], section)
	m.made = append(m.made, out)
}

// spell formats a location like llvm-readobj --stackmap, but with the names of registers.
func spell(blob *stackmap.Blob, l stackmap.Location) string {
	name := machine.AMD64.RegisterName(l.Reg)
	switch l.Kind {
	case stackmap.Register:
		return "Register " + name
	case stackmap.Direct:
		return fmt.Sprintf("Direct %s%+d", name, l.Offset)
	case stackmap.Indirect:
		return fmt.Sprintf("Indirect [%s%+d]", name, l.Offset)
	case stackmap.Constant:
		return fmt.Sprintf("Constant %d", l.Offset)
	}
	return fmt.Sprintf("ConstantIndex #%d (%#x)", l.Offset, blob.Constants[l.Offset])
}

// writeMutant writes the object of a mutant to a file of the test's own.
func writeMutant(t testing.TB, m mutant) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "mutant.o")
	require.NoError(t, os.WriteFile(path, m.object, 0o644))
	return path
}

// toolLines runs a program, which must succeed, and returns the lines of its standard output.
func toolLines(t testing.TB, tool string, args ...string) []string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), tool, args...)
	out, err := cmd.Output()
	require.NoError(t, err, "%s", cmd)
	return slices.Collect(strings.Lines(string(out)))
}

// mutated lists the programs for mutants of stack maps.
var mutated = []string{"tick.ll", "guards.ll", "patch.ll", "state.ll", "memory.ll", "floats.ll", "recursion.ll", "null.ll"}

// TestMutants requires that each mutant differs from its original in one location (two for a swap) or one entry of the constant table, as
// llvm-readobj reads both, and in no other byte of the file. It checks ten mutants of each program.
func TestMutants(t *testing.T) {
	livetest.Slow(t)
	for _, version := range []int{14, 19, 22} {
		readobj := livetest.LLVM(t, version, "llvm-readobj")
		kinds := map[mutation]int{}
		for _, program := range mutated {
			path := livetest.PICObject(t, version, program, "-O2")
			list := mutants(t, path, 1)
			require.Equal(t, list, mutants(t, path, 1))
			require.NotEqual(t, list, mutants(t, path, 2))
			before := toolLines(t, readobj, "--stackmap", path)
			seen := map[string]bool{}
			for i, m := range list {
				kinds[m.kind]++
				require.False(t, seen[string(m.object)], "%s: %v comes twice", program, m)
				seen[string(m.object)] = true
				if i >= 10 || i >= 3 && !livetest.Whole() {
					continue
				}
				changed := writeMutant(t, m)
				after := toolLines(t, readobj, "--stackmap", changed)
				require.Len(t, after, len(before))
				differ := 0
				for i := range before {
					if before[i] != after[i] && !strings.HasPrefix(before[i], "File: ") {
						differ++
					}
				}
				switch {
				case m.kind == swapped:
					require.Equal(t, 2, differ, "%s: %v", program, m)
				case m.kind == wrongConstant && strings.HasPrefix(m.old, "ConstantIndex"):
					require.GreaterOrEqual(t, differ, 2, "%s: %v", program, m) // the table, and the locations that use the entry
				default:
					require.Equal(t, 1, differ, "%s: %v", program, m)
				}
			}
		}
		for kind := range mutations {
			require.NotZero(t, kinds[kind], "LLVM %d: no mutant of kind %v", version, kind)
		}
	}
}

// TestMutantsRun requires that a wrong stack map does not change the results of the program.
func TestMutantsRun(t *testing.T) {
	livetest.Slow(t)
	o := livetest.ObjectHostOptions{Threads: 2, Rounds: 20}
	for _, program := range mutated {
		checksum, _ := livetest.CVersion(t, program, o)
		for _, m := range mutants(t, livetest.PICObject(t, 19, program, "-O2"), 1)[:3] {
			command := livetest.ObjectHostCommand(t, writeMutant(t, m), o)
			require.Equal(t, []string{checksum + "\n"}, toolLines(t, command[0], command[1:]...), "%s: %v", program, m)
		}
	}
}

// TestUnchangedMutant requires that rewriting a stack map without a change gives the bytes of the object.
func TestUnchangedMutant(t *testing.T) {
	livetest.Slow(t)
	for _, version := range []int{14, 19, 22} {
		for _, program := range mutated {
			m := newMutator(t, livetest.PICObject(t, version, program, "-O0"), 1)
			section, err := stackmap.AppendBlob(nil, binary.LittleEndian, m.blob())
			require.NoError(t, err)
			require.Equal(t, m.section, section, "LLVM %d: %s", version, program)
		}
	}
}
