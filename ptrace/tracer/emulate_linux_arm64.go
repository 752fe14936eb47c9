package tracer

// On arm64 no instruction is emulated: each is run.
type emulated struct{}

func shadowStack(int) bool { return false }

func (b *breakpoint) decode(memory, bool) {}

func (s *server) emulates(*thread, *breakpoint, *General) bool { return false }
