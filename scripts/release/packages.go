package main

import (
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// packages builds a .deb and an .rpm with nfpm. nfpm.mod in this folder pins the version of nfpm, so that nfpm's modules are not dependencies of the
// project.
func (r *release) packages(architecture, program string) error {
	type entry = map[string]any
	contents := []entry{{"src": program, "dst": "/usr/bin/reframe", "file_info": entry{"mode": 0o755}}}
	for _, path := range r.share {
		content := filepath.Join(r.work, "share", path)
		if strings.HasPrefix(path, "man1/") { // Debian policy 12.1 requires compressed manual pages
			packed := filepath.Join(r.work, filepath.Base(path)+".gz")
			if err := gzipped(packed, content); err != nil {
				return err
			}
			content = packed
		}
		contents = append(contents, entry{"src": content, "dst": installed(path), "file_info": entry{"mode": 0o644}})
	}
	for _, c := range contents {
		c["file_info"].(entry)["mtime"] = r.date
	}
	config, err := json.MarshalIndent(entry{ // JSON is also valid YAML
		"name": "reframe", "arch": architecture, "platform": "linux", "version": r.version, "version_schema": "none", "release": "1", "section": "devel", "priority": "optional",
		"maintainer": "Reframe authors <reframe@localhost>", "license": "MIT", "mtime": r.date,
		"description": "rebuild interpreter frames of code that LLVM compiled just in time\n" +
			"Reframe looks from outside at a process, finds the stack map record of each\nprogram counter, reads every recorded value, and rebuilds the frame that an\ninterpreter would have had there.",
		"rpm":      entry{"buildhost": "localhost", "summary": "Rebuild interpreter frames of code that LLVM compiled just in time"},
		"contents": contents,
	}, "", "  ")
	if err != nil {
		return err
	}
	name := filepath.Join(r.work, "nfpm-"+architecture+".yaml")
	if err := os.WriteFile(name, config, 0o644); err != nil {
		return err
	}
	for _, format := range []string{"deb", "rpm"} {
		c := command(r.src, "go", "tool", "-modfile=scripts/release/nfpm.mod", "nfpm", "package", "-f", name, "-p", format, "-t", r.out)
		c.Env = append(os.Environ(), r.epoch(), "GOFLAGS=", "GOWORK=off", "TZ=UTC")
		c.Stdout = nil // nfpm prints the names of its files
		if err := c.Run(); err != nil {
			return fmt.Errorf("nfpm: %w", err)
		}
	}
	return nil
}

// installed returns the path at which a package installs a file of an archive.
func installed(path string) string {
	dir, name := filepath.Split(filepath.ToSlash(path))
	switch dir {
	case "man1/":
		return "/usr/share/man/man1/" + name + ".gz"
	case "completions/bash/":
		return "/usr/share/bash-completion/completions/" + name
	case "completions/zsh/":
		return "/usr/share/zsh/vendor-completions/" + name
	case "completions/fish/":
		return "/usr/share/fish/vendor_completions.d/" + name
	}
	if path == "LICENSE" {
		path = "copyright"
	}
	return "/usr/share/doc/reframe/" + filepath.ToSlash(path)
}

func gzipped(output, input string) error {
	content, err := os.ReadFile(input)
	if err != nil {
		return err
	}
	f, err := os.Create(output)
	if err != nil {
		return err
	}
	z, err := gzip.NewWriterLevel(f, gzip.BestCompression)
	if err != nil {
		return errors.Join(err, f.Close())
	}
	_, err = z.Write(content)
	return errors.Join(err, z.Close(), f.Close())
}
