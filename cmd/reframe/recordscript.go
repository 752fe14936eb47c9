package main

import (
	"context"
	"errors"

	"reframe/internal/newfile"
	"reframe/replay"
)

// writeScript writes the first script of the core that was recorded. It is there whole or not at all.
func (a *app) writeScript(ctx context.Context, k *recording) error {
	text, err := replay.FirstScript(ctx, replay.First{Script: k.script, Core: k.output, Options: k.coreOptions(), Modules: k.modules, Layouts: k.layouts})
	if err != nil {
		return err
	}
	if k.script == standard {
		_, err = a.stdout.WriteString(text)
		return err
	}
	f, err := newfile.Create(k.script, k.force)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	return f.Finish(errors.Join(err, f.Chmod(0o644)))
}
