package machine

// Range is the memory from Start up to but not including End.
type Range struct{ Start, End Addr }

// Contains reports whether addr lies in the range.
func (r Range) Contains(addr Addr) bool { return r.Start <= addr && addr < r.End }

// Empty reports whether the range contains no address.
func (r Range) Empty() bool { return r.Start >= r.End }
