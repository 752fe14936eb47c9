package verify

import (
	"cmp"
	"errors"
	"slices"

	"example.com/reframe/internal/machine"
	"example.com/reframe/ptrace/system"
)

// errSharedMemory is the reason why a difference is not evidence of an error: another process may have stored to the memory between the two runs.
var errSharedMemory = errors.New("memory shared with other processes")

// sharedWithOthers reports whether other processes may store to an address.
func (v *verifier) sharedWithOthers(addr machine.Addr) bool {
	maps, err := v.watcher.View().Target().Mappings()
	if err != nil {
		return false
	}
	i := slices.IndexFunc(maps, func(m machine.Mapping) bool { return m.Contains(addr) })
	return i >= 0 && maps[i].Share && v.shared.mappedElsewhere(v.session.PID(), &maps[i])
}

// sharedFile identifies the file of a shared mapping.
type sharedFile struct {
	path  string
	inode uint64
}

// sharedFiles holds the files of shared mappings that other processes map, too.
type sharedFiles map[sharedFile]bool

// mappedElsewhere reports whether a process other than pid maps the same file. It records such a file, because the other process may have stored to
// it.
func (s *sharedFiles) mappedElsewhere(pid int, m *machine.Mapping) bool {
	key := sharedFile{m.Path, m.Inode}
	if (*s)[key] {
		return true
	}
	if !system.MappedElsewhere(pid, m.Path, m.Inode) {
		return false
	}
	if *s == nil {
		*s = sharedFiles{}
	}
	(*s)[key] = true
	return true
}

// withoutShared removes differences that other processes may have caused.
func (v *verifier) withoutShared(c comparedMemory) comparedMemory {
	c.Diffs = slices.DeleteFunc(c.Diffs, func(d memoryDiff) bool {
		if !v.sharedWithOthers(d.Addr) {
			return false
		}
		c.Words -= d.Size / diffWord
		c.why = cmp.Or(c.why, errSharedMemory)
		return true
	})
	return c
}
