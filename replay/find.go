package replay

import (
	"cmp"
	"errors"
	"fmt"
	"hash/fnv"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Item is a script or a core to process.
type Item struct {
	Kind  Kind
	Path  string // the given path, or the given folder joined with the name in it
	Named bool   // the path itself was given; false if it was found in a folder

	within string // the name relative to the given folder, which does not depend on the folder's path
	err    error  // error of the search
}

// ScriptSuffix is the suffix of a script's name.
const ScriptSuffix = ".txtar"

// Find lists the files that patterns match, sorted by path, each path once. A pattern is a file; DIR for all files in it; or DIR/... for all files in
// it and below. In a folder, files with the suffix [ScriptSuffix] are scripts. Any file may be a core: its content is checked when it is processed.
// Find skips names that begin with a dot, and does not follow links to folders. A pattern that matches nothing becomes an item that fails.
func Find(kind Kind, patterns []string) []Item {
	var items []Item
	for _, p := range patterns {
		items = append(items, find(kind, p)...)
	}
	slices.SortStableFunc(items, func(a, b Item) int { return cmp.Compare(a.Path, b.Path) })
	return slices.CompactFunc(items, func(a, b Item) bool { return a.Path == b.Path })
}

// find lists the files of one pattern.
func find(kind Kind, pattern string) []Item {
	dir, below := strings.CutSuffix(filepath.ToSlash(pattern), "/...")
	if pattern == "..." {
		dir, below = ".", true
	}
	if dir == "" {
		dir = "/" // the pattern is "/..."
	}
	root := filepath.Clean(dir)
	failed := func(path string, err error) Item {
		return Item{Kind: kind, Path: path, Named: true, within: filepath.Base(path), err: err}
	}
	named := root
	if below {
		named = filepath.Join(root, "...")
	}
	info, err := os.Stat(root)
	switch {
	case err != nil:
		return []Item{failed(named, err)}
	case !info.IsDir() && below:
		return []Item{failed(named, errors.New("not a folder"))}
	case !info.IsDir():
		return []Item{{Kind: kind, Path: root, Named: true, within: filepath.Base(root)}}
	}
	var items []Item
	for folders := []string{""}; len(folders) > 0; {
		folder := folders[len(folders)-1]
		folders = folders[:len(folders)-1]
		entries, err := os.ReadDir(filepath.Join(root, folder))
		if err != nil {
			items = append(items, failed(filepath.Join(root, folder), err))
		}
		for _, e := range entries {
			name := filepath.Join(folder, e.Name())
			switch {
			case strings.HasPrefix(e.Name(), "."):
			case e.IsDir():
				if below {
					folders = append(folders, name)
				}
			case (kind == Core || strings.HasSuffix(name, ScriptSuffix)) && isFile(filepath.Join(root, name), e):
				items = append(items, Item{Kind: kind, Path: filepath.Join(root, name), within: filepath.ToSlash(name)})
			}
		}
	}
	return items
}

// isFile reports whether an entry is a regular file or a link to one. In a Kubernetes volume of a ConfigMap, every file is a link.
func isFile(path string, e fs.DirEntry) bool {
	if e.Type()&fs.ModeSymlink == 0 {
		return e.Type().IsRegular()
	}
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}

// Shard returns part index of n parts of the items. Every item is in exactly one part, determined by its name in the folder and not by its position
// in the list. So the parts may be computed at different times, on machines that mount the folder at other paths, and while files are added.
func Shard(items []Item, index, n int) []Item {
	if n < 1 || index < 0 || index >= n {
		panic(fmt.Sprintf("replay: there is no part %d of %d", index, n))
	}
	var part []Item
	for _, i := range items {
		h := fnv.New64a()
		_, _ = h.Write([]byte(i.within))
		if h.Sum64()%uint64(n) == uint64(index) {
			part = append(part, i)
		}
	}
	return part
}
