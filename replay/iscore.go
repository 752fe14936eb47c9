package replay

import (
	"os"

	"example.com/reframe/ptrace"
	"example.com/reframe/ptrace/elfcore"
)

// IsCore reports whether the content of a file is that of a core, complete or not, compressed or not. Errors in a core are found when it is opened.
func IsCore(path string) (bool, error) {
	if info, err := os.Stat(path); err != nil || !info.Mode().IsRegular() { // opening a pipe may block
		return false, err
	}
	f, err := os.Open(path)
	if err != nil {
		return false, err
	}
	defer f.Close()
	return elfcore.IsCore(f)
}

// refuse reports whether an item is not a core, and then sets its result.
func (r *Result) refuse(item Item) (refused bool) {
	switch is, err := IsCore(item.Path); {
	case err != nil:
		r.Message = reason(err)
	case is:
		return false
	case item.Named:
		r.Message = ptrace.ErrNotCore.Error()
	default:
		r.Outcome = PassedOver
	}
	return true
}
