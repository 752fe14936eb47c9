package replay

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"

	"example.com/reframe/internal/base/newfile"
	"example.com/reframe/internal/vm/vmlayout"
)

// maxCopies bounds the number of different files with the same name in a directory.
const maxCopies = 1000

// Keep writes a first script next to a core, with copies of the modules and layouts at the given paths, so that the core can be opened on any
// machine. It returns the path of the script. It does not copy a module that is not a file, such as one found in a process, and does not overwrite
// files.
func Keep(ctx context.Context, core string, modules, layouts []string) (script string, err error) {
	return keep(ctx, nil, core, modules, layouts)
}

// Keep is like the function [Keep], for a core that may describe itself. It runs the script once.
func (s *Scripts) Keep(ctx context.Context, core string, modules, layouts []string) (script string, err error) {
	return keep(ctx, s, core, modules, layouts)
}

func keep(ctx context.Context, s *Scripts, core string, modules, layouts []string) (script string, err error) {
	first := First{Script: core + ".txtar", Core: core, Scripts: s}
	if first.Modules, err = copies(filepath.Dir(core), modules); err != nil {
		return "", err
	}
	if first.Layouts, err = copies(filepath.Dir(core), layouts); err != nil {
		return "", err
	}
	return first.Script, first.Write(ctx, false)
}

// Write writes the script. If the script has a runner, Write runs it once, and it must pass. With force it replaces an existing file. The file
// appears only when it is complete.
func (o First) Write(ctx context.Context, force bool) error {
	text, err := FirstScript(ctx, o)
	if err != nil {
		return err
	}
	f, err := newfile.Create(o.Script, force)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	if err = f.Finish(err); err != nil || o.Scripts == nil {
		return err
	}
	if r := o.Scripts.Run(ctx, o.Script); r.Outcome != OK {
		return fmt.Errorf("the script %s was written, but it fails: %s", o.Script, r.Message)
	}
	return nil
}

// copies copies files into a directory, each under its own name, or as name-2 if another file has that name, and returns their paths. Builtin layouts
// are not copied.
func copies(dir string, paths []string) (list []string, err error) {
	for _, from := range paths {
		if vmlayout.IsBuiltin(from) {
			list = append(list, from)
			continue
		}
		if info, err := os.Stat(from); err != nil || !info.Mode().IsRegular() {
			continue
		}
		text, err := os.ReadFile(from)
		if err != nil {
			return nil, err
		}
		to, err := copyTo(dir, filepath.Base(from), text)
		if err != nil {
			return nil, err
		}
		list = append(list, to)
	}
	return list, nil
}

// copyTo writes a copy, unless a file with the same content exists.
func copyTo(dir, name string, text []byte) (path string, err error) {
	return newfile.Unused(dir, name, maxCopies, func(path string) error {
		if there, err := os.ReadFile(path); err == nil && bytes.Equal(there, text) {
			return nil
		}
		f, err := newfile.Create(path, false)
		if err != nil {
			return err
		}
		_, err = f.Write(text)
		return f.Finish(err)
	})
}
