package machine

// Range is memory from start up to, not including, end.
type Range struct{ Start, End Addr }
