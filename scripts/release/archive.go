package main

import (
	"archive/tar"
	"archive/zip"
	"compress/gzip"
	"errors"
	"io"
	"os"
)

// A file is an entry of an archive: its name, with slashes, the path of its content, and its mode.
type file struct {
	name, path string
	mode       int64
}

// tar writes a .tar.gz with all files below one directory. Its bytes do not depend on the user, on the time, or on the order of the file system.
func (r *release) tar(output, dir string, files []file) error {
	f, err := os.Create(output)
	if err != nil {
		return err
	}
	z, err := gzip.NewWriterLevel(f, gzip.BestCompression) // the header contains neither a name nor a time
	if err != nil {
		return errors.Join(err, f.Close())
	}
	w := tar.NewWriter(z)
	add := func(file file) error {
		content, err := os.ReadFile(file.path)
		if err != nil {
			return err
		}
		header := &tar.Header{
			Typeflag: tar.TypeReg, Name: dir + "/" + file.name, Mode: file.mode, Size: int64(len(content)), ModTime: r.date,
			Uname: "root", Gname: "root",
		}
		if err := w.WriteHeader(header); err != nil {
			return err
		}
		_, err = w.Write(content)
		return err
	}
	for _, file := range files {
		if err := add(file); err != nil {
			return errors.Join(err, f.Close())
		}
	}
	return errors.Join(w.Close(), z.Close(), f.Close())
}

// zip writes the same files as tar, in a .zip for Windows.
func (r *release) zip(output, dir string, files []file) error {
	f, err := os.Create(output)
	if err != nil {
		return err
	}
	w := zip.NewWriter(f)
	add := func(file file) error {
		content, err := os.Open(file.path)
		if err != nil {
			return err
		}
		defer content.Close()
		header := &zip.FileHeader{Name: dir + "/" + file.name, Method: zip.Deflate, Modified: r.date}
		header.SetMode(os.FileMode(file.mode))
		to, err := w.CreateHeader(header)
		if err != nil {
			return err
		}
		_, err = io.Copy(to, content)
		return err
	}
	for _, file := range files {
		if err := add(file); err != nil {
			return errors.Join(err, f.Close())
		}
	}
	return errors.Join(w.Close(), f.Close())
}
