package system

import (
	"bufio"
	"fmt"
	"os"
	"strconv"
	"strings"
)

// MappedElsewhere reports whether a process other than pid has a writable shared mapping of a file that pid maps. The file is given by its inode, and
// by its path as in /proc/PID/maps. A process whose mappings cannot be read counts, too, if it may have the file. A file without a directory entry
// (MAP_ANONYMOUS, memfd_create(2)) can be shared only with parents and children.
func MappedElsewhere(pid int, path string, inode uint64) bool {
	list, err := os.ReadDir("/proc")
	if err != nil {
		return true
	}
	for _, e := range list {
		other, err := strconv.Atoi(e.Name())
		if err != nil || other == pid {
			continue
		}
		is, known := mapsShared(other, path, inode)
		if is || !known && (!strings.HasSuffix(path, " (deleted)") || parentOf(other) == pid || parentOf(pid) == other) {
			return true
		}
	}
	return false
}

func parentOf(pid int) int {
	parent, _ := strconv.Atoi(StatusField(pid, "PPid"))
	return parent
}

// maxMaps bounds the number of mappings that are read from a process.
const maxMaps = 1 << 20

// mapsShared reports whether a process has a writable shared mapping of the file. known is false if its mappings cannot be read.
func mapsShared(pid int, path string, inode uint64) (is, known bool) {
	f, err := os.Open(fmt.Sprintf("/proc/%d/maps", pid))
	if err != nil {
		return false, !os.IsPermission(err) // another error means that the process has ended
	}
	defer f.Close()
	number := fmt.Sprint(inode)
	lines := bufio.NewScanner(f)
	for n := 0; n < maxMaps && lines.Scan(); n++ {
		// address perms offset dev inode pathname (proc(5))
		fields := strings.Fields(lines.Text())
		if len(fields) < 6 || fields[4] != number || !strings.HasSuffix(fields[1], "s") || fields[1][1] != 'w' {
			continue
		}
		if name := strings.TrimSuffix(path, " (deleted)"); strings.HasPrefix(strings.Join(fields[5:], " "), name) {
			return true, true
		}
	}
	return false, lines.Err() == nil || !os.IsPermission(lines.Err())
}
