package tracer

func (t *thread) setDebug(debugRegisters) error { return nil }

func (t *thread) clearDebug(func(uint64) bool) error { return nil }
