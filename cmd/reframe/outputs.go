package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"example.com/reframe/internal/base/newfile"
	"example.com/reframe/internal/llvm/ir"
	"example.com/reframe/internal/vm/vmlayout"
)

// named is the path of a file, and the flag or argument that gave the path.
type named struct{ by, path string }

// standard is the file name that means standard output.
const standard = "-"

// forceFlag adds --force, which overwrites files.
func forceFlag(c *cobra.Command, force *bool) {
	c.Flags().BoolVar(force, "force", false, "overwrite existing files")
}

// refuseLoss rejects output files that are also inputs, or outputs twice, and any other existing file without force.
func refuseLoss(force bool, outputs, inputs []named) error {
	for i, out := range outputs {
		if out.path == "" || out.path == standard {
			continue
		}
		for _, in := range inputs {
			if in.path != "" && newfile.Same(out.path, in.path) {
				return usage("%s %s: cannot overwrite the input of %s", out.by, out.path, in.by)
			}
		}
		for _, other := range outputs[:i] {
			if other.path != "" && newfile.Same(out.path, other.path) {
				return usage("%s and %s: must be different files, not %s for both", other.by, out.by, out.path)
			}
		}
	}
	for _, out := range outputs {
		if out.path != "" && out.path != standard && newfile.Free(out.path) != nil && !force {
			return fmt.Errorf("%s %s: the file exists; --force overwrites it", out.by, out.path)
		}
	}
	return nil
}

// inputFiles lists the files that are read.
func (k *inputs) inputFiles(command []string) []named {
	list := []named{{"--core", k.core}, {"--exe", k.files.Exe}}
	files, _ := ir.Files(k.Modules) // an error is reported when the files are read
	for _, f := range files {
		list = append(list, named{"--ir", f.Path})
	}
	for _, path := range k.Layouts {
		if vmlayout.IsBuiltin(path) {
			continue
		}
		list = append(list, named{"--layout", path})
	}
	objects, _ := k.given() // an error is reported when the target is opened
	for _, o := range objects {
		list = append(list, named{"--object", o.Path})
	}
	for _, word := range command {
		if info, err := os.Stat(word); err == nil && info.Mode().IsRegular() {
			list = append(list, named{"the command", word})
		}
	}
	return list
}

// copyOut copies a file to standard output.
func (a *app) copyOut(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = io.Copy(a.stdout, f)
	return err
}

// writeFile writes standard output, or a file, which appears only when it is complete. It replaces an existing file only with force. It sets mode
// independently of the umask, because the memory of a process is private to its user.
func (a *app) writeFile(path string, force bool, mode os.FileMode, write func(io.Writer) error) error {
	if path == standard {
		return write(a.stdout)
	}
	if !newfile.Regular(path) { // a pipe, /dev/stdout
		f, err := newfile.Stream(context.Background(), path, force) // a signal ends these verbs at once
		if err != nil {
			return err
		}
		return errors.Join(write(f), f.Close())
	}
	f, err := newfile.Create(path, force)
	if err != nil {
		return err
	}
	return f.Finish(errors.Join(write(f), f.Chmod(mode)))
}
