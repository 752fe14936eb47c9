package replay

import (
	"context"
	"maps"
	"sync"
)

// uses are the files that decided about a result besides its item: a script's core, its modules and layouts, the program that
// it launched. A [Journal] keeps the result for as long as they stay as they were.
type uses struct {
	mu    sync.Mutex
	files map[string]fileState // by their absolute paths, as they were before they were read
	size  int                  // of the paths, in bytes
}

// maxUses bounds the paths of one result, in bytes. A result of more is not kept.
const maxUses = 64 << 10

type usesKey struct{}

// withUses returns a context in which u is told what is used.
func withUses(ctx context.Context, u *uses) context.Context {
	return context.WithValue(ctx, usesKey{}, u)
}

// use notes a file that is about to be read, be it there or not, where somebody wants to know.
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

// all are the files, unless they are too many.
func (u *uses) all() (files map[string]fileState, ok bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	return maps.Clone(u.files), u.size <= maxUses
}
