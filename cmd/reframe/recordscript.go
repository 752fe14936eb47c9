package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"

	"reframe/replay"
)

// writeScript writes the first script of the core that was recorded. It is there whole or not at all.
func (a *app) writeScript(ctx context.Context, k *recording) error {
	text, err := replay.FirstScript(ctx, replay.First{Script: k.script, Core: k.output, Options: k.coreOptions(), Modules: k.modules, Layouts: k.layouts})
	if err != nil {
		return err
	}
	path := k.script
	if file, err := filepath.EvalSymlinks(path); err == nil { // what a link leads to is replaced, not the link
		path = file
	}
	f, err := os.CreateTemp(filepath.Dir(path), ".reframe.*")
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	if err = errors.Join(err, f.Chmod(0o644), f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		_ = os.Remove(f.Name())
	}
	return err
}
