package ptrace

// releasedError is the type of [ErrReleased].
type releasedError struct{}

func (releasedError) Error() string {
	return "the process was resumed meanwhile, because reframe was stopped or its output was not read"
}

// Is reports whether target is [ErrProcessExited]: as after an execve(2) of another thread, the stopped state can no longer be read.
func (releasedError) Is(target error) bool { return target == ErrProcessExited }
