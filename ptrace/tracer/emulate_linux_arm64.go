package tracer

// emulated is empty: on arm64 every instruction is run and none is emulated.
type emulated struct{}

func shadowStack(int) bool { return false }

func (b *breakpoint) decode(memory, bool) {}

func (s *server) emulates(*thread, *breakpoint, *General) bool { return false }
