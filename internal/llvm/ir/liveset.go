package ir

import (
	"hash/maphash"
	"os"
	"time"
)

// LiveSet reads the modules that names lead to again and again, while a process writes them.
//
// Its fields hold the state of the last reading: [LiveSet.Read] returns what has changed since the one before.
type LiveSet struct {
	names []string
	seed  maphash.Seed
	seen  map[string]*stamp
	bytes int64
	ready map[string]*Module // modules that were read already, by their files
}

// stamp is a file as it was read.
type stamp struct {
	modified time.Time
	size     int64
	racy     bool // it was written so shortly before it was read that it may have been written again at the same time of change
	bad      bool // it could not be read; its writer may not have ended
	told     bool // that was reported
	hash     uint64
}

// FileVersion is the content of a file that is new, or that was written again.
type FileVersion struct {
	Module   *Module
	Hash     uint64 // of the text
	Path     string
	Modified time.Time
	Named    bool // the user named the file; a folder or a pattern led to others
}

// racy is how long after a file was written it is read again although its time and size are the same: times of files are those of the kernel's
// last tick (4 ms with CONFIG_HZ=250), and of some file systems full seconds.
const racy = 2 * time.Second

// NewLiveSet begins with nothing read.
func NewLiveSet(names []string) *LiveSet {
	return &LiveSet{names: names, seed: maphash.MakeSeed(), seen: map[string]*stamp{}}
}

// Have takes modules that were read of these files just now: the next reading does not read them again.
func (l *LiveSet) Have(modules []*Module) {
	l.ready = map[string]*Module{}
	for _, m := range modules {
		l.ready[m.Name] = m
	}
}

// Read reads what is new, or was written since it was read. What a name leads to need not be there yet. A file that cannot be read may be one that is
// being written: it is read again the next time, and notes say what is wrong with it where it is still the same then.
func (l *LiveSet) Read() (list []FileVersion, notes []string) {
	for _, name := range l.names {
		all, err := files(name)
		if err != nil {
			continue // there is none yet
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
	if m != nil { // the next reading looks whether it has changed meanwhile
		now.racy, now.hash = true, maphash.String(l.seed, m.Text())
		return &FileVersion{m, now.hash, f.Path, now.modified, !f.Found}, ""
	}
	m, err = ParseFile(f.Path)
	if err == nil && m.Size() <= checkedWhole {
		err = m.Check()
	}
	if again, failed := os.Stat(f.Path); failed != nil || !again.ModTime().Equal(now.modified) || again.Size() != now.size {
		now.bad = true // it was written while it was read
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
