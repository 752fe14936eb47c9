package tracer

func (t *thread) setDebug(debugRegisters) error { return nil }

func (t *thread) clearDebug([]uint64) error { return nil }
