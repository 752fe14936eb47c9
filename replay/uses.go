package replay

import (
	"context"
	"maps"
	"sync"
)

// uses records the files on which a result depends in addition to its item: a script's core, modules and layouts, and the program that it launched. A
// [Journal] uses the result as long as they are unchanged.
type uses struct {
	mu    sync.Mutex
	files map[string]fileState // files by absolute path, with the state that they had before they were read
	size  int                  // total size of the paths in bytes
}

// maxUses bounds the total size of the paths of one result, in bytes. A result that exceeds it is not stored.
const maxUses = 64 << 10

type usesKey struct{}

// withUses returns a context whose uses are recorded in u.
func withUses(ctx context.Context, u *uses) context.Context {
	return context.WithValue(ctx, usesKey{}, u)
}

// use records a file that is about to be read, whether or not it exists, if withUses has made the context.
func use(ctx context.Context, path string) {
	u, wanted := ctx.Value(usesKey{}).(*uses)
	if !wanted {
		return
	}
	state := stateOf(path)
	u.mu.Lock()
	defer u.mu.Unlock()
	if _, known := u.files[path]; known || u.size > maxUses {
		return
	}
	if u.files == nil {
		u.files = map[string]fileState{}
	}
	u.files[path] = state
	u.size += len(path)
}

// all returns the files. ok is false if there were too many.
func (u *uses) all() (files map[string]fileState, ok bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	return maps.Clone(u.files), u.size <= maxUses
}
