package delve

import (
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"

	"example.com/reframe/deopt/frame"
	"example.com/reframe/internal/machine"
)

// register is a register in the reply to ListRegisters. Delve formats values for people (DwarfRegisterToString in pkg/proc).
type register struct {
	Name        string
	Value       string
	DwarfNumber int
}

// archOf recognizes the architecture by the names of its registers. It returns nil for an architecture that is not supported.
func archOf(regs []register) *machine.Arch {
	has := func(name string) bool {
		return slices.ContainsFunc(regs, func(r register) bool { return r.Name == name })
	}
	switch {
	case has("Rip"):
		return machine.AMD64
	case has("X30") && has("SP") && has("PC") && !has("X31"): // riscv64 has X31
		return machine.ARM64
	}
	return nil
}

// The numbers of registers of x86-64 that are in no frame (Delve's pkg/dwarf/regnum/amd64.go).
const (
	fsBase = 58
	mxcsr  = 64
	x87    = 65
)

const (
	xmm    = 16 // size of an SSE register
	mmx    = 8
	st0    = 33
	mm0    = 41
	absent = "Delve does not list this register"
)

// parseRegisters decodes the registers of a thread. widest is the number of low bytes of a vector register that are reliable.
func parseRegisters(arch *machine.Arch, list []register, widest int) (*machine.Registers, error) {
	regs := machine.NewRegisters(arch, absent)
	regs.ForgetFloatControl(frame.Because(frame.FloatsUnread, "Delve does not list the registers that control floating-point arithmetic"))
	if arch == machine.ARM64 {
		regs.Forget(machine.ARM64VG, frame.Because(frame.VectorLength, "Delve does not list the length of SVE vectors"))
	}
	seen := map[int]bool{}
	control := map[int]uint64{}
	for _, r := range list {
		name := canonical(arch, r.DwarfNumber)
		if name == "" {
			continue
		}
		bad := func(what string) error {
			return fmt.Errorf("register %s: %s", oneLine(r.Name), what)
		}
		switch {
		case !strings.EqualFold(r.Name, name):
			return nil, bad(fmt.Sprintf("its number %d is that of %s", r.DwarfNumber, name))
		case seen[r.DwarfNumber]:
			return nil, bad("listed twice")
		}
		seen[r.DwarfNumber] = true
		reg := machine.DWARFReg(r.DwarfNumber)
		switch {
		case arch == machine.AMD64 && (r.DwarfNumber == fsBase || r.DwarfNumber == mxcsr || r.DwarfNumber == x87):
			word, _, _ := strings.Cut(r.Value, "\t")
			v, ok := number(arch, word, 8)
			if !ok {
				return nil, bad("its value is malformed")
			}
			control[r.DwarfNumber] = arch.Uint(v)
		case arch == machine.AMD64 && reg >= st0 && reg < mm0:
			word, _, _ := strings.Cut(r.Value, "\t")
			v, ok := number(arch, word, 10)
			if !ok || len(word) != 2+20 {
				return nil, bad("its value is malformed")
			}
			regs.Set(reg, v)
			regs.Set(reg-st0+mm0, v[:mmx])
		case vector(arch, reg):
			v, ok := vectorValue(arch, strings.TrimPrefix(name, "xmm"), r.Value)
			if !ok {
				return nil, bad("its value is malformed")
			}
			regs.Set(reg, v[:min(len(v), widest)])
		default:
			v, ok := number(arch, r.Value, 8)
			if !ok {
				return nil, bad("its value is malformed")
			}
			regs.SetUint(reg, arch.Uint(v))
		}
	}
	for _, reg := range arch.Registers() {
		if general(arch, reg) && !seen[int(reg)] {
			return nil, fmt.Errorf("register %s is missing", arch.RegisterName(reg))
		}
	}
	if arch == machine.ARM64 && !seen[int(arch.PC)] {
		return nil, errors.New("register pc is missing")
	}
	regs.SetThreadPointer(machine.Addr(control[fsBase]))
	if arch == machine.AMD64 && seen[mxcsr] && seen[x87] {
		// The format is that of an FXSAVE area, which holds the control word at 0 and mxcsr at 24 (Intel SDM vol. 1, 10.5.1).
		area := make([]byte, 28)
		arch.Order.PutUint16(area, uint16(control[x87]))
		arch.Order.PutUint32(area[24:], uint32(control[mxcsr]))
		c, err := machine.FloatControlOf(arch, area)
		if err != nil {
			return nil, err
		}
		regs.SetFloatControl(c)
	}
	return regs, nil
}

// canonical returns the lower-case name that Delve uses for a register, or "" if the register is not read.
func canonical(arch *machine.Arch, n int) string {
	if n < 0 || n > 0xff {
		return ""
	}
	reg := machine.DWARFReg(n)
	if arch == machine.ARM64 {
		switch {
		case reg == arch.PC:
			return "pc"
		case general(arch, reg), vector(arch, reg):
			return arch.RegisterName(reg)
		}
		return ""
	}
	switch {
	case n == fsBase:
		return "fs_base"
	case n == mxcsr:
		return "mxcsr"
	case n == x87:
		return "cw"
	case reg >= st0 && reg < mm0:
		return fmt.Sprintf("st(%d)", reg-st0)
	case general(arch, reg), vector(arch, reg):
		return arch.RegisterName(reg)
	}
	return ""
}

// general reports whether every list of registers must contain reg, apart from the pc of arm64.
func general(arch *machine.Arch, reg machine.DWARFReg) bool {
	if arch == machine.ARM64 {
		return reg <= arch.SP
	}
	return reg <= arch.PC
}

// vector reports whether reg is a vector register that Delve lists.
func vector(arch *machine.Arch, reg machine.DWARFReg) bool {
	if arch == machine.ARM64 {
		return reg >= 64 && reg < 96
	}
	return reg >= 17 && reg < 33
}

// number decodes an unsigned number of at most size bytes, such as "0x00001f80". It returns size bytes in the byte order of the architecture.
func number(arch *machine.Arch, text string, size int) ([]byte, bool) {
	digits, ok := strings.CutPrefix(text, "0x")
	if !ok || digits == "" || len(digits) > 2*size {
		return nil, false
	}
	b, err := hex.DecodeString(strings.Repeat("0", 2*size-len(digits)) + digits)
	if err != nil {
		return nil, false
	}
	if !arch.BigEndian() {
		slices.Reverse(b)
	}
	return b, true
}

// vectorValue decodes a vector register. n is the number of the register. On x86-64 the text has a line for each 16 bytes, such as
// "0x…\tv2_int={ … }\n\t[YMM0h] 0x…\tv2_int={ … }". On arm64 one of its lines is "\tQ = {u = {0x…}, s = {0x…}}".
func vectorValue(arch *machine.Arch, n, text string) ([]byte, bool) {
	if arch == machine.ARM64 {
		_, rest, _ := strings.Cut(text, "\tQ = {u = {")
		word, _, found := strings.Cut(rest, "}")
		if !found || !strings.HasPrefix(text, " {\n\tD = ") || len(word) != 2+2*xmm {
			return nil, false
		}
		return number(arch, word, xmm)
	}
	labels := []string{"", "\t[YMM" + n + "h] ", "\t[ZMM" + n + "hl] ", "\t[ZMM" + n + "hh] "}
	var value []byte
	parts := strings.Split(text, "\n")
	if len(parts) == 3 || len(parts) > len(labels) {
		return nil, false
	}
	for i, part := range parts {
		part, labelled := strings.CutPrefix(part, labels[i])
		word, _, found := strings.Cut(part, "\t")
		v, ok := number(arch, word, xmm)
		if !labelled || !found || !ok || len(word) != 2+2*xmm {
			return nil, false
		}
		value = append(value, v...)
	}
	return value, true
}
