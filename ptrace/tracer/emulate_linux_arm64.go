package tracer

// emulated is empty, because on arm64 no instruction is emulated.
type emulated struct{}

func shadowStack(int) bool { return false }

func (b *breakpoint) decode(memory, bool) {}

func (s *server) emulates(*thread, *breakpoint, *General) bool { return false }
