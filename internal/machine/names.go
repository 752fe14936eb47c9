package machine

import (
	"slices"
	"strconv"
	"strings"
)

// part is the low bytes of a register.
type part struct {
	reg  DWARFReg
	size int
}

// alias gives the names of Size bytes of the registers whose name is From and a number, or From alone: To and that number plus Add.
type alias struct {
	From string
	Size int
	To   string
	Add  int
}

// nameParts returns the names that parts of registers have of their own.
func (a *Arch) nameParts(aliases []alias) map[part]string {
	parts := map[part]string{}
	for _, al := range aliases {
		a.name(parts, al)
	}
	return parts
}

// name names the parts that al is about.
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

// NameOf returns what people call size bytes of r: of x86-64's xmm3 32 bytes are ymm3, of
// aarch64's v0 8 bytes are d0 and of its x0 4 bytes w0. A size that has no name of its
// own gets that of the register; one that a does not have gets what
// [Arch.RegisterName] says.
func (a *Arch) NameOf(r DWARFReg, size int) string {
	if name, ok := a.parts()[part{r, size}]; ok {
		return name
	}
	return a.RegisterName(r)
}

// rows returns count rows like r with consecutive numbers from dwarf, named name and
// consecutive numbers from first.
func rows(dwarf DWARFReg, name string, first, count int, r RegisterInfo) []RegisterInfo {
	list := make([]RegisterInfo, count)
	for i := range list {
		list[i] = r
		list[i].DWARF, list[i].Name = dwarf+DWARFReg(i), name+strconv.Itoa(first+i)
	}
	return list
}

// archs are all architectures, with the other names that people give them.
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

// ByName finds an architecture by Go's name for it or one of LLVM's and GNU's, such as
// x86_64, aarch64_be or powerpc64le.
func ByName(name string) (*Arch, bool) {
	for _, a := range archs {
		if a.arch.Name == name || slices.Contains(a.other, name) {
			return a.arch, true
		}
	}
	return nil, false
}
