package cfi

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/internal/machine"
	"example.com/reframe/internal/machine/object"
	"example.com/reframe/test/livetest"
)

// machO is an object or an image for macOS.
type machO struct {
	path    string
	arch    *machine.Arch
	moved   machine.Addr // distance between load addresses and those that tools print
	code    placed
	image   machine.Addr // address of its header, if it is linked
	section placed       // __compact_unwind or __unwind_info
	compact *Compact
	table   *Table         // nil without __eh_frame
	places  []machine.Addr // some addresses in its code
}

// placed is code as a [machine.Memory].
type placed struct {
	start machine.Addr
	data  []byte
}

func (p placed) ReadMemory(b []byte, addr machine.Addr) error {
	if addr < p.start || uint64(addr-p.start)+uint64(len(b)) > uint64(len(p.data)) {
		return &machine.MemoryError{Addr: addr, Len: len(b), Why: "not in the code"}
	}
	copy(b, p.data[addr-p.start:])
	return nil
}

func openMachO(t *testing.T, path string) *machO {
	t.Helper()
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	img, err := object.New(filepath.Base(path), bytes.NewReader(data), int64(len(data)))
	require.NoError(t, err)
	m := &machO{path: path}
	m.arch, err = img.Arch()
	require.NoError(t, err)
	text := img.Section("__TEXT,__text")
	linkedAt := text.Addr
	img.PlaceSections()
	m.moved = text.Addr - linkedAt
	m.code.start = text.Addr
	m.code.data, err = text.Data()
	require.NoError(t, err)
	relocated := func(name string) ([]byte, machine.Addr) {
		s := img.Section(name)
		if s == nil {
			return nil, 0
		}
		b, _, err := s.Relocated()
		require.NoError(t, err)
		return b, s.Addr
	}
	if img.Relocatable() {
		m.section.data, m.section.start = relocated("__LD,__compact_unwind")
		m.compact, err = ReadCompactUnwind(m.arch, m.section.data)
	} else {
		var ok bool
		m.image, ok = img.FileAddr(0)
		require.True(t, ok)
		m.section.data, m.section.start = relocated("__TEXT,__unwind_info")
		s := Section{Addr: m.section.start, Data: bytes.NewReader(m.section.data), Size: int64(len(m.section.data))}
		m.compact, err = OpenUnwindInfo(m.arch, s, m.image)
	}
	require.NoError(t, err)
	for at := 0; at < len(m.code.data); at += len(m.code.data)/8 + 1 {
		m.places = append(m.places, m.code.start+machine.Addr(at))
	}
	if b, addr := relocated("__TEXT,__eh_frame"); b != nil {
		m.table, err = NewTable(Sections{Arch: m.arch, EHFrame: Section{Addr: addr, Data: bytes.NewReader(b), Size: int64(len(b))}})
		require.NoError(t, err)
	}
	return m
}

// disassembled is a line of llvm-objdump -d that starts with an address.
var disassembled = regexp.MustCompile(`(?m)^\s*([0-9a-f]+):\s+(\S+)`)

// sites returns the addresses of the calls, and of the traps in the bodies of the functions from framesModule.
func (m *machO) sites(t *testing.T) []machine.Addr {
	t.Helper()
	out := []byte(livetest.Printed(t, livetest.LLVM(t, 19, "llvm-objdump"), "-d", "--no-show-raw-insn", m.path))
	var sites []machine.Addr
	for _, match := range disassembled.FindAllSubmatch(out, -1) {
		switch string(match[2]) {
		case "callq", "int3", "bl", "blr", "brk":
			addr, err := strconv.ParseUint(string(match[1]), 16, 64)
			require.NoError(t, err)
			sites = append(sites, machine.Addr(addr)+m.moved)
		}
	}
	return sites
}

// mode returns the name of an encoding's mode.
func (m *machO) mode(e *CompactEntry) string {
	names := map[uint32]string{amd64Frame: "frame", amd64Immediate: "immediate", amd64Indirect: "indirect", amd64DWARF: "DWARF"}
	if m.arch == machine.ARM64 {
		names = map[uint32]string{arm64Frameless: "frameless", arm64DWARF: "DWARF", arm64Frame: "frame"}
	}
	return names[e.Encoding&compactMode]
}

// sameAtSites compares the rows of the encoding and of __eh_frame at every site, and counts the functions and sites of each mode.
func (m *machO) sameAtSites(t *testing.T, functions, sites map[string]int) {
	t.Helper()
	require.NotNil(t, m.table, m.path)
	for i := range m.compact.rows {
		functions[m.mode(&m.compact.rows[i])]++
	}
	for _, pc := range m.sites(t) {
		e, err := m.compact.Find(pc)
		if err != nil {
			require.ErrorIs(t, err, ErrNoFDE)
			sites[m.without(t, pc)]++
			continue
		}
		require.True(t, e.Start <= pc && pc < e.End)
		sites[m.mode(e)]++
		fde, err := m.table.Find(pc)
		require.NoError(t, err, "%s at %v", m.path, pc)
		require.Equal(t, fde.Start, e.Start)
		require.Equal(t, fde.End, e.End)
		row, err := e.AtCalls(m.code)
		if m.mode(e) == "DWARF" {
			require.ErrorIs(t, err, ErrInFDE)
			its, err := e.FDE(m.table)
			require.NoError(t, err)
			require.Equal(t, fde.Offset, its.Offset)
			continue
		}
		require.NoError(t, err)
		want, err := fde.Rules(pc)
		require.NoError(t, err)
		require.Equal(t, want.ReturnAddress, row.ReturnAddress)
		require.Equal(t, want.CFA, row.CFA, "%s at %v, encoding %#x", m.path, pc-m.moved, e.Encoding)
		require.Equal(t, want.Columns(), row.Columns(), "%s at %v, encoding %#x", m.path, pc-m.moved, e.Encoding)
		for _, reg := range row.Columns() {
			require.Equal(t, want.Rule(reg), row.Rule(reg), "%s at %v, encoding %#x, %s", m.path, pc-m.moved, e.Encoding, m.arch.RegisterName(reg))
		}
	}
}

// without returns the reason why a site has no compact encoding. Either its function has no entry in __eh_frame, because it is declared not to throw, or
// (x86-64) its function has no frame: LLVM omits the encoding then.
func (m *machO) without(t *testing.T, pc machine.Addr) string {
	t.Helper()
	fde, err := m.table.Find(pc)
	if err != nil {
		require.ErrorIs(t, err, ErrNoFDE, "%s at %v", m.path, pc)
		return "nothing known"
	}
	row, err := fde.Rules(pc)
	require.NoError(t, err)
	require.Equal(t, machine.AMD64, m.arch)
	require.Equal(t, CFARule{Kind: CFARegister, Register: machine.AMD64.SP, Offset: 8}, row.CFA)
	require.Equal(t, []machine.DWARFReg{machine.AMD64.PC}, row.Columns())
	require.Equal(t, byte(0xcc), m.code.data[pc-m.code.start], "a call out of a function without frame: %s at %v", m.path, pc)
	return "leaf without frame"
}

// module stores a test's module where a later run finds it again: livetest caches compiled code by the name of its source.
func module(t *testing.T, name, text string) string {
	t.Helper()
	cache, err := os.UserCacheDir()
	require.NoError(t, err)
	dir := filepath.Join(cache, "reframe-test", fmt.Sprintf("%x", sha256.Sum256([]byte(text))))
	require.NoError(t, os.MkdirAll(dir, 0o755))
	path := filepath.Join(dir, name)
	if _, err := os.Stat(path); err == nil {
		return path
	}
	work, err := os.MkdirTemp(dir, "writing-")
	require.NoError(t, err)
	defer os.RemoveAll(work)
	fresh := filepath.Join(work, name)
	require.NoError(t, os.WriteFile(fresh, []byte(text), 0o644))
	require.NoError(t, os.Rename(fresh, path))
	return path
}

// join formats each name and concatenates the results.
func join(names []string, format string) string {
	var b strings.Builder
	for i, name := range names {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(strings.ReplaceAll(format, "$", name))
	}
	return b.String()
}
