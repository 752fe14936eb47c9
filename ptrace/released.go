package ptrace

// releasedError is the type of [ErrReleased].
type releasedError struct{}

func (releasedError) Error() string {
	return "the process was let run meanwhile, because reframe was stopped or its output was not read"
}

// Is reports whether target is [ErrGone]: as after an execve(2) of another thread, nothing of the stopped process is left to be looked at.
func (releasedError) Is(target error) bool { return target == ErrGone }
