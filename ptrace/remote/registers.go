package remote

import (
	"encoding/hex"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"example.com/reframe/deopt/frame"
	"example.com/reframe/internal/machine"
)

// Limits on a target description.
const (
	maxDescriptions = 32      // files of one description
	maxDescription  = 1 << 20 // bytes of a file
	maxRegisters    = 4 << 10
	maxRegisterBits = 8 * 4 << 10
)

// register describes one register of a target description ("Target Description Format", appendix G of gdb's manual).
type register struct {
	name   string
	number uint64 // number in the packet p
	size   int    // in bytes
	at     int    // offset in the reply to g; -1 if unknown
}

// description is a target description: the architecture, and the registers in the order of their numbers.
type description struct {
	arch      *machine.Arch
	registers []register
}

// architectures maps the architecture names of gdb's BFD and of lldb to architectures.
var architectures = map[string]*machine.Arch{
	"i386:x86-64": machine.AMD64, "i386:x64-32": nil, "x86_64": machine.AMD64, "x86-64": machine.AMD64,
	"aarch64": machine.ARM64, "arm64": machine.ARM64,
	"riscv:rv64": machine.RISCV64, "riscv": machine.RISCV64, "riscv64": machine.RISCV64,
	"s390:64-bit": machine.S390X, "s390x": machine.S390X,
	"powerpc:common64": machine.PPC64LE, "powerpc64le": machine.PPC64LE,
	"Loongarch64": machine.LOONG64, "loongarch64": machine.LOONG64,
}

// features maps names of features to architectures, for descriptions that do not name the architecture.
var features = []struct {
	prefix string
	arch   *machine.Arch
}{
	{"org.gnu.gdb.aarch64.", machine.ARM64}, {"org.gnu.gdb.s390.", machine.S390X}, {"org.gnu.gdb.power.", machine.PPC64LE}, {"org.gnu.gdb.loongarch.", machine.LOONG64},
}

// describe parses the target description. read returns a file of the description by name.
func describe(read func(name string) (string, error)) (*description, error) {
	p := &parser{read: read}
	if err := p.file("target.xml"); err != nil {
		return nil, fmt.Errorf("its target description cannot be read: %w", err)
	}
	d := &description{registers: p.registers}
	known := false
	if d.arch, known = architectures[p.arch]; !known {
		for _, f := range features {
			if slices.ContainsFunc(p.features, func(name string) bool { return strings.HasPrefix(name, f.prefix) }) {
				d.arch = f.arch
				break
			}
		}
	}
	if d.arch == nil {
		return nil, fmt.Errorf("its target description is of an architecture that is not supported: %q", clean([]byte(p.arch)))
	}
	slices.SortStableFunc(d.registers, func(a, b register) int {
		switch {
		case a.number < b.number:
			return -1
		case a.number > b.number:
			return 1
		}
		return 0
	})
	next := 0
	for i := range d.registers { // lldb-server gives offsets, because some registers are parts of others
		r := &d.registers[i]
		if r.at < 0 {
			r.at = next
		}
		next = r.at + r.size
	}
	return d, nil
}

// parser collects the registers of a target description.
type parser struct {
	read      func(name string) (string, error)
	files     int
	arch      string
	features  []string
	registers []register
	next      uint64 // number of the next register that has no number attribute
}

var errNoBits = errors.New("a register has no valid size")

// file parses a file of the description, and the files that it includes.
func (p *parser) file(name string) error {
	if p.files++; p.files > maxDescriptions {
		return fmt.Errorf("it has more than %d files", maxDescriptions)
	}
	text, err := p.read(name)
	if err != nil {
		return err
	}
	if len(text) > maxDescription {
		return fmt.Errorf("%s: it has more than %d bytes", name, maxDescription)
	}
	d := xml.NewDecoder(strings.NewReader(text))
	for {
		token, err := d.Token()
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return fmt.Errorf("%s: %w", name, err)
		}
		e, ok := token.(xml.StartElement)
		if !ok {
			continue
		}
		attribute := func(name string) string {
			for _, a := range e.Attr {
				if a.Name.Local == name {
					return a.Value
				}
			}
			return ""
		}
		switch e.Name.Local {
		case "architecture":
			var arch string
			if err := d.DecodeElement(&arch, &e); err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
			p.arch = strings.TrimSpace(arch)
		case "feature":
			p.features = append(p.features, attribute("name"))
		case "include":
			if err := p.file(attribute("href")); err != nil {
				return err
			}
		case "reg":
			bits, err := strconv.ParseUint(attribute("bitsize"), 10, 32)
			if err != nil || bits == 0 || bits > maxRegisterBits {
				return fmt.Errorf("%s: %q: %w", name, attribute("name"), errNoBits)
			}
			if text := attribute("regnum"); text != "" {
				if p.next, err = strconv.ParseUint(text, 10, 32); err != nil {
					return fmt.Errorf("%s: %q has no valid number", name, attribute("name"))
				}
			}
			if len(p.registers) == maxRegisters {
				return fmt.Errorf("it has more than %d registers", maxRegisters)
			}
			r := register{name: attribute("name"), number: p.next, size: int(bits+7) / 8, at: -1}
			if text := attribute("offset"); text != "" {
				at, err := strconv.ParseUint(text, 10, 32)
				if err != nil || at > maxPacket {
					return fmt.Errorf("%s: %q has no valid offset", name, attribute("name"))
				}
				r.at = int(at)
			}
			p.registers = append(p.registers, r)
			p.next++
		}
	}
}

// missing is the reason for a register that the stub does not provide.
const missing = "the stub does not provide it"

// values holds the registers of a thread by name, lowest address first.
type values map[string][]byte

// parse parses a reply to g: two digits for each byte, or xx for an unavailable byte. The reply may end early.
func (d *description) parse(reply []byte) (values, error) {
	if len(reply)%2 != 0 {
		return nil, errors.New("a reply to g has an odd length")
	}
	out := values{}
	for _, r := range d.registers {
		from, to := 2*r.at, 2*(r.at+r.size)
		if to > len(reply) {
			continue
		}
		text := reply[from:to]
		if text[0] == 'x' {
			continue
		}
		b := make([]byte, r.size)
		if _, err := hex.Decode(b, text); err != nil {
			return nil, fmt.Errorf("a reply to g is malformed at %s", r.name)
		}
		out[r.name] = b
	}
	return out, nil
}

// aliases maps the names of registers in target descriptions to the names in the architecture's table.
var aliases = map[*machine.Arch]map[string]string{
	machine.ARM64:   {"fp": "x29", "lr": "x30"},
	machine.RISCV64: {"x0": "zero", "fp": "s0"},
	machine.S390X:   accessNames(),
	machine.LOONG64: loongNames(),
	machine.PPC64LE: altivecNames(),
	machine.PPC64:   altivecNames(),
	machine.ARM64BE: {"fp": "x29", "lr": "x30"},
}

// loongNames maps r0 to r31 to the names of the ABI.
func loongNames() map[string]string {
	names := map[string]string{}
	for _, reg := range machine.LOONG64.Registers() {
		if reg < 32 {
			names["r"+strconv.Itoa(int(reg))] = machine.LOONG64.RegisterName(reg)
		}
	}
	return names
}

// accessNames maps the names of access registers.
func accessNames() map[string]string {
	names := map[string]string{}
	for n := range 16 {
		names[fmt.Sprintf("acr%d", n)] = fmt.Sprintf("a%d", n)
	}
	return names
}

// altivecNames maps vr0 to vr31 to the names of the ABI.
func altivecNames() map[string]string {
	names := map[string]string{}
	for n := range 32 {
		names[fmt.Sprintf("vr%d", n)] = fmt.Sprintf("v%d", n)
	}
	return names
}

// registersOf creates registers from values.
func (d *description) registersOf(v values) (*machine.Registers, error) {
	a := d.arch
	out := machine.NewRegisters(a, missing)
	for _, reg := range a.Registers() {
		info, _ := a.Register(reg)
		name := a.RegisterName(reg)
		b, ok := v[name]
		for other, own := range aliases[a] {
			if own == name && !ok {
				b, ok = v[other]
			}
		}
		switch {
		case !ok:
		case info.Class == machine.Vector && len(b) <= info.Size, len(b) == info.Size:
			out.Set(reg, b)
		case info.Class == machine.General || reg == a.PC:
			return nil, fmt.Errorf("%s has %d bytes: expected %d", name, len(b), info.Size)
		}
	}
	d.vectors(out, v)
	d.controls(out, v)
	if _, err := out.Addr(a.SP); err != nil {
		return nil, errors.New("the stub does not provide the stack pointer")
	}
	if _, err := out.Addr(a.PC); err != nil {
		b := v["pc"]
		if a == machine.S390X {
			b = v["pswa"] // the address in the program status word
		}
		if len(b) != 8 {
			return nil, errors.New("the stub does not provide the program counter")
		}
		out.SetUint(a.PC, a.Order.Uint64(b))
	}
	return out, nil
}

// vectors sets the vector registers that target descriptions split into parts, or describe as parts of other registers.
func (d *description) vectors(out *machine.Registers, v values) {
	switch d.arch {
	case machine.AMD64:
		d.joinVectors(out, v)
	case machine.ARM64:
		for _, reg := range d.arch.Registers() {
			number, ok := strings.CutPrefix(d.arch.RegisterName(reg), "v")
			if b := v["z"+number]; ok && v["v"+number] == nil && len(b) >= 16 {
				out.Set(reg, b[:16])
			}
		}
		if v["vg"] == nil {
			out.Forget(machine.ARM64VG, frame.Because(frame.VectorLength, "the stub does not provide the thread's vector length (vg)"))
		}
	}
}

// joinVectors joins xmm with the upper parts of ymm and zmm.
func (d *description) joinVectors(out *machine.Registers, v values) {
	for _, reg := range d.arch.Registers() {
		number, ok := strings.CutPrefix(d.arch.RegisterName(reg), "xmm")
		if !ok {
			continue
		}
		whole := slices.Clone(v["xmm"+number])
		if b := v["ymm"+number]; len(b) == 32 { // lldb-server describes the complete register, and xmm as a part of it
			whole = slices.Clone(b)
		}
		for _, upper := range []string{"ymm" + number + "h", "zmm" + number + "h"} {
			if b := v[upper]; len(b) == len(whole) {
				whole = append(whole, b...)
			}
		}
		if len(whole) > 0 {
			out.Set(reg, whole)
		}
	}
}

// controls sets the registers that control floating-point arithmetic, and the thread pointer.
func (d *description) controls(out *machine.Registers, v values) {
	a := d.arch
	word := func(names ...string) (uint64, bool) {
		for _, name := range names {
			if b, ok := v[name]; ok && len(b) <= 8 && len(b) > 0 {
				return a.Uint(b), true
			}
		}
		return 0, false
	}
	out.ForgetFloatControl(frame.Because(frame.FloatsUnread, "the stub does not provide the registers that control floating-point arithmetic"))
	switch a {
	case machine.AMD64:
		mxcsr, has := word("mxcsr")
		x87, also := word("fctrl")
		if has && also {
			out.SetFloatControl(machine.FloatControl{MXCSR: uint32(mxcsr) &^ 0x3f, X87: uint16(x87)})
		}
		if base, ok := word("fs_base"); ok {
			out.SetThreadPointer(machine.Addr(base))
		}
	case machine.ARM64:
		if fpcr, ok := word("fpcr"); ok {
			out.SetFloatControl(machine.FloatControl{FPCR: fpcr})
		}
		if base, ok := word("tpidr", "tpidr_el0"); ok {
			out.SetThreadPointer(machine.Addr(base))
		}
	}
}
