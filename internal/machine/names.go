package machine

import (
	"slices"
	"strconv"
	"strings"
)

// part identifies the low bytes of a register.
type part struct {
	reg  DWARFReg
	size int
}

// alias names the low Size bytes of registers. A register named From followed by a number gets the name To followed by that number plus Add. A register
// named From gets the name To.
type alias struct {
	From string
	Size int
	To   string
	Add  int
}

// nameParts returns the separate names that parts of registers have.
func (a *Arch) nameParts(aliases []alias) map[part]string {
	parts := map[part]string{}
	for _, al := range aliases {
		a.name(parts, al)
	}
	return parts
}

// name adds the names of one alias to parts.
func (a *Arch) name(parts map[part]string, al alias) {
	for _, r := range a.order {
		number, ok := strings.CutPrefix(a.row(r).Name, al.From)
		if !ok {
			continue
		}
		if n, err := strconv.Atoi(number); err == nil {
			number = strconv.Itoa(n + al.Add)
		} else if number != "" {
			continue
		}
		parts[part{r, al.Size}] = al.To + number
	}
}

// NameOf returns the common name of the low size bytes of r. On x86-64, 32 bytes of xmm3 are ymm3; on aarch64, 8 bytes of v0 are d0 and 4 bytes of x0
// are w0. If that size has no separate name, it returns [Arch.RegisterName].
func (a *Arch) NameOf(r DWARFReg, size int) string {
	if name, ok := a.parts()[part{r, size}]; ok {
		return name
	}
	return a.RegisterName(r)
}

// rows returns count copies of r with consecutive DWARF numbers from dwarf on. Their names are name and consecutive numbers from first on.
func rows(dwarf DWARFReg, name string, first, count int, r RegisterInfo) []RegisterInfo {
	list := make([]RegisterInfo, count)
	for i := range list {
		list[i] = r
		list[i].DWARF, list[i].Name = dwarf+DWARFReg(i), name+strconv.Itoa(first+i)
	}
	return list
}

// archs lists all architectures with their other names.
var archs = []struct {
	arch  *Arch
	other []string
}{
	{AMD64, []string{"x86-64", "x86_64", "x64"}},
	{ARM64, []string{"aarch64"}},
	{ARM64BE, []string{"aarch64_be", "aarch64be"}},
	{PPC64, []string{"powerpc64"}},
	{PPC64LE, []string{"powerpc64le"}},
	{RISCV64, nil},
	{S390X, []string{"systemz"}},
	{LOONG64, []string{"loongarch64"}},
}

// Archs returns all architectures.
func Archs() []*Arch {
	list := make([]*Arch, len(archs))
	for i, a := range archs {
		list[i] = a.arch
	}
	return list
}

// ByName returns the architecture with a name of Go, LLVM or GNU, such as amd64, x86_64, aarch64_be or powerpc64le.
func ByName(name string) (*Arch, bool) {
	for _, a := range archs {
		if a.arch.Name == name || slices.Contains(a.other, name) {
			return a.arch, true
		}
	}
	return nil, false
}
