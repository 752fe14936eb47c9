package machine

// Range is memory from start up to, not including, end.
type Range struct{ Start, End Addr }

// Contains reports whether addr lies in the range.
func (r Range) Contains(addr Addr) bool { return r.Start <= addr && addr < r.End }

// Empty reports whether no address lies in the range.
func (r Range) Empty() bool { return r.Start >= r.End }
