package ir

import (
	"hash/maphash"
	"os"
	"time"
)

// LiveSet repeatedly reads the modules that names match, while a process writes them.
//
// It remembers the last reading, so that [LiveSet.Read] returns only new and changed modules.
type LiveSet struct {
	names []string
	seed  maphash.Seed
	seen  map[string]*stamp
	bytes int64
	ready map[string]*Module // modules that are already read, by file
}

// stamp describes a file at its last reading.
type stamp struct {
	modified time.Time
	size     int64
	racy     bool // it was modified so recently that a later change may have the same time
	bad      bool // reading failed; a writer may not have finished
	told     bool // the failure to read it was reported
	hash     uint64
}

// FileVersion is the content of a new or changed file.
type FileVersion struct {
	Module   *Module
	Hash     uint64 // hash of the text
	Path     string
	Modified time.Time
	Named    bool // the user named the file itself, not its folder or a pattern
}

// racy is the time after a change during which a file is read again even if its time and size are the same. File times have the resolution of the
// kernel's tick (4 ms with CONFIG_HZ=250), or of full seconds on some file systems.
const racy = 2 * time.Second

// NewLiveSet returns a set that has not read any file yet.
func NewLiveSet(names []string) *LiveSet {
	return &LiveSet{names: names, seed: maphash.MakeSeed(), seen: map[string]*stamp{}}
}

// Have adds modules that were just read from their files, so that the next reading does not read them again.
func (l *LiveSet) Have(modules []*Module) {
	l.ready = map[string]*Module{}
	for _, m := range modules {
		l.ready[m.Name] = m
	}
}

// Read returns the modules in new and changed files. Names need not match any file yet. A file that cannot be read may still be being written: Read tries it
// again at the next call, and reports the error in notes if the file is unchanged by then.
func (l *LiveSet) Read() (list []FileVersion, notes []string) {
	for _, name := range l.names {
		all, err := files(name)
		if err != nil {
			continue // no file yet
		}
		for _, f := range all {
			v, note := l.file(f)
			if v != nil {
				list = append(list, *v)
			}
			if note != "" && len(notes) < maxNotes {
				notes = append(notes, note)
			}
		}
	}
	return list, notes
}

func (l *LiveSet) file(f NamedFile) (v *FileVersion, note string) {
	info, err := os.Stat(f.Path)
	if err != nil || !info.Mode().IsRegular() {
		return nil, ""
	}
	before := l.seen[f.Path]
	same := before != nil && before.modified.Equal(info.ModTime()) && before.size == info.Size()
	if same && !before.racy && !before.bad {
		return nil, ""
	}
	if before == nil && len(l.seen) == maxFiles || l.bytes+info.Size() > maxBytes {
		return nil, ""
	}
	now := &stamp{modified: info.ModTime(), size: info.Size(), racy: time.Since(info.ModTime()) < racy}
	l.seen[f.Path] = now
	m, err := l.ready[f.Path], error(nil)
	delete(l.ready, f.Path)
	if m != nil { // the next reading checks whether it has changed in the meantime
		now.racy, now.hash = true, maphash.String(l.seed, m.Text())
		return &FileVersion{m, now.hash, f.Path, now.modified, !f.Found}, ""
	}
	m, err = ParseFile(f.Path)
	if err == nil && m.Size() <= checkedWhole {
		err = m.Check()
	}
	if again, failed := os.Stat(f.Path); failed != nil || !again.ModTime().Equal(now.modified) || again.Size() != now.size {
		now.bad = true // it changed while it was read
		return nil, ""
	}
	if err != nil {
		now.bad = true
		if same && before.bad {
			if now.told = true; !before.told {
				note = err.Error()
			}
		}
		return nil, note
	}
	l.bytes += info.Size()
	now.hash = maphash.String(l.seed, m.Text())
	if same && before.hash == now.hash && !before.bad {
		now.racy = now.racy && before.racy
		return nil, ""
	}
	m.Found = true
	return &FileVersion{m, now.hash, f.Path, now.modified, !f.Found}, ""
}
