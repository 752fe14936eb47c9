package replay

import (
	"context"
	"path/filepath"
)

// EachCore returns a [Job] that runs a script for each core, with the core's absolute path in $CORE.
func EachCore(s Scripts, script string) Job {
	return func(ctx context.Context, item Item) Result {
		r := Result{Kind: Core, Path: item.Path, Outcome: Failed}
		if r.refuse(item) {
			return r
		}
		path, err := filepath.Abs(item.Path)
		if err != nil {
			r.Message = err.Error()
			return r
		}
		s := s // a copy, because the environment of each script contains its core
		s.Env = append(s.Env[:len(s.Env):len(s.Env)], "CORE="+path)
		ran := s.Run(ctx, script)
		r.Outcome, r.Message, r.Log = ran.Outcome, ran.Message, ran.Log
		return r
	}
}
