package frame

import "fmt"

// String returns the location in assembler syntax: "rbx" for a register, "[rsp+16]" for memory, "&[rbp-8]" for an address, or "constant".
func (l *Location) String() string {
	switch l.Kind {
	case "Register":
		if l.Offset != 0 {
			return fmt.Sprintf("%s, bit %d", l.Register, l.Offset)
		}
		return l.Register
	case "Direct":
		return fmt.Sprintf("&[%s%+d]", l.Register, l.Offset)
	case "Indirect":
		return fmt.Sprintf("[%s%+d]", l.Register, l.Offset)
	}
	return "constant"
}
