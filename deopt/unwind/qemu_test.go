package unwind

import (
	"bytes"
	"debug/elf"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/deopt/unwind/cfi"
	"example.com/reframe/internal/machine"
	"example.com/reframe/test/livetest"
)

// qemuArch holds gdb's names of the registers of an architecture.
type qemuArch struct {
	livetest.Cross
	arch    *machine.Arch
	general map[string]machine.DWARFReg // word-sized registers
	floats  map[string]machine.DWARFReg // registers that hold a double
	double  string                      // gdb's expression for the double; %s is the name
	deep    [4]string                   // registers that testdata/qemu.c sets: two general registers, then two other registers
}

func qemuArches(t *testing.T) []*qemuArch {
	var list []*qemuArch
	for _, c := range livetest.Crosses {
		arch, ok := machine.ByName(c.Arch)
		require.True(t, ok)
		a := &qemuArch{Cross: c, arch: arch, general: map[string]machine.DWARFReg{"pc": arch.PC}, floats: map[string]machine.DWARFReg{}, double: "(double)$%s"}
		for _, reg := range arch.Registers() {
			info, _ := arch.Register(reg)
			switch {
			case reg >= 1200: // the second numbers of ppc64's r0 to r31
			case info.Size == 8 && info.Class == machine.General, reg == arch.Link:
				a.general[info.Name] = reg
			case info.Class == machine.Vector && info.Kept == 8, arch == machine.S390X && strings.HasPrefix(info.Name, "f"):
				a.floats[info.Name] = reg // s390x code saves general registers in these caller-saved ones
			}
		}
		switch arch {
		case machine.ARM64:
			a.deep = [4]string{"x19", "x28", "v8", "v15"}
			a.double = "$%s.d.f[0]"
		case machine.PPC64, machine.PPC64LE:
			a.deep = [4]string{"r14", "r30", "f14", "f31"}
		case machine.RISCV64:
			a.deep = [4]string{"s1", "s11", "fs0", "fs11"}
			a.double = "$%s.double"
		case machine.S390X:
			a.deep = [4]string{"r6", "r10", "f8", "f15"}
		}
		list = append(list, a)
	}
	return list
}

// number returns the DWARF number of a register in a.deep.
func (a *qemuArch) number(name string) machine.DWARFReg {
	if reg, ok := a.general[name]; ok {
		return reg
	}
	return a.floats[name]
}

// qemuFrame is a frame as testdata/qemu.py prints it.
type qemuFrame struct {
	PC, CFA   machine.Addr
	Function  string
	Signal    bool
	Registers map[string]uint64
}

// qemuRun holds gdb's report of a program through QEMU's stub: its frames and, as a target, its memory and the registers of the innermost frame.
type qemuRun struct {
	frames      []qemuFrame
	regs        *machine.Registers
	memory      regions
	trampolines machine.Addr // the page that signal handlers return to
	program     *qemuProgram
}

// regions is copied memory.
type regions []region

type region struct {
	start machine.Addr
	data  []byte
}

// ReadMemory implements [machine.Memory].
func (r regions) ReadMemory(p []byte, addr machine.Addr) error {
	for _, part := range r {
		if off := uint64(addr - part.start); addr >= part.start && off <= uint64(len(part.data)) && uint64(len(p)) <= uint64(len(part.data))-off {
			copy(p, part.data[off:])
			return nil
		}
	}
	return &machine.MemoryError{Addr: addr, Len: len(p), Why: "not copied"}
}

// qemuProgram is one build of testdata/qemu.c. It implements [Finder].
type qemuProgram struct {
	*qemuArch
	path    string
	image   *elf.File
	code    *Code
	nowhere Code
}

func buildQEMU(t *testing.T, a *qemuArch, bare []string, flags ...string) *qemuProgram {
	t.Helper()
	object := a.Build(t, append(append([]string{"-c", "-fno-asynchronous-unwind-tables", "-fno-unwind-tables", "-fno-optimize-sibling-calls"}, bare...), flags...), "testdata/qemubare.c")
	path := a.Build(t, append(append([]string{"-static", "-fasynchronous-unwind-tables", "-fno-optimize-sibling-calls", "-Wall", "-Wextra", "-Werror"}, flags...), object), "testdata/qemu.c")
	p := &qemuProgram{qemuArch: a, path: path}
	var err error
	p.image, err = elf.Open(path)
	require.NoError(t, err)
	t.Cleanup(func() { p.image.Close() })
	table, err := cfi.NewTable(sectionsOf(t, path, 0))
	require.NoError(t, err)
	p.code = &Code{Source: path, Table: table}
	return p
}

func (p *qemuProgram) Code(pc machine.Addr) *Code {
	if p.executable(pc) {
		return p.code
	}
	return &p.nowhere
}

// executable reports whether addr is in the code of the program itself.
func (p *qemuProgram) executable(addr machine.Addr) bool {
	return slices.ContainsFunc(p.image.Progs, func(s *elf.Prog) bool {
		return s.Type == elf.PT_LOAD && s.Flags&elf.PF_X != 0 && uint64(addr) >= s.Vaddr && uint64(addr) < s.Vaddr+s.Filesz
	})
}

// underStub runs the program under QEMU and gdb until it faults.
func (p *qemuProgram) underStub(t *testing.T, way string) *qemuRun {
	t.Helper()
	python := func(name string, value any) string {
		b, err := json.Marshal(value)
		require.NoError(t, err)
		return fmt.Sprintf("python %s=%s", name, b)
	}
	var general []string
	for name := range p.general {
		general = append(general, name)
	}
	floats := map[string]string{}
	for name := range p.floats {
		floats[name] = fmt.Sprintf(p.double, name)
	}
	run := &qemuRun{program: p}
	var writable [][2]uint64
	for _, s := range p.image.Progs {
		switch {
		case s.Type != elf.PT_LOAD:
		case s.Flags&elf.PF_W != 0:
			writable = append(writable, [2]uint64{s.Vaddr, s.Vaddr + s.Memsz})
		default:
			data := make([]byte, s.Filesz)
			_, err := s.ReadAt(data, 0)
			require.NoError(t, err)
			run.memory = append(run.memory, region{machine.Addr(s.Vaddr), data})
		}
	}
	out := p.GDB(t, "testdata/qemu.py", []string{python("faults", 1+strings.Count(way, "altstack")+2*strings.Count(way, "nested")), python("general", general), python("floats", floats), python("writable", writable)}, p.path, way)
	for line := range bytes.Lines(out) {
		if !bytes.HasPrefix(line, []byte("{")) {
			continue
		}
		var l struct {
			Frame  *qemuFrame
			Memory *struct {
				Start machine.Addr
				Data  []byte
			}
			Trampolines machine.Addr
		}
		require.NoError(t, json.Unmarshal(line, &l), "%s", line)
		switch {
		case l.Frame != nil:
			run.frames = append(run.frames, *l.Frame)
		case l.Memory != nil:
			run.memory = append(run.memory, region{l.Memory.Start, l.Memory.Data})
		case l.Trampolines != 0:
			run.trampolines = l.Trampolines
		}
	}
	require.NotEmpty(t, run.frames, "%s", out)
	run.regs = machine.NewRegisters(p.arch, "gdb was not asked for it")
	for name, v := range run.frames[0].Registers {
		run.regs.SetUint(p.number(name), v)
	}
	return run
}

// unwinder returns an Unwinder for the memory and the state that gdb reported.
func (r *qemuRun) unwinder() Unwinder {
	return Unwinder{Arch: r.program.arch, Memory: r.memory, Finder: r.program, Executable: func(addr machine.Addr) bool {
		return r.program.executable(addr) || addr/4096 == r.trampolines/4096
	}}
}
