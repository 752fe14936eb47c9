package system

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"example.com/reframe/internal/machine"
)

// servingTypes are the types of file systems whose pages another process or machine provides. An overlay may have layers of these types.
var servingTypes = []string{"fuse", "fuseblk", "nfs", "nfs4", "cifs", "smb3", "9p", "ceph", "afs", "overlay", "virtiofs"}

// Served returns the mappings of a process whose files are on file systems of servingTypes. An access to one of their pages waits until the file
// system answers.
func Served(tid int) (list []machine.Range) {
	maps, err := os.ReadFile(fmt.Sprintf("/proc/%d/maps", tid))
	if err != nil || !strings.Contains(string(maps), " 00:") { // such file systems have devices with major number 0
		return nil
	}
	mounts, err := os.ReadFile(fmt.Sprintf("/proc/%d/mountinfo", tid))
	if err != nil {
		return nil
	}
	devices := servingDevices(string(mounts))
	for line := range strings.Lines(string(maps)) {
		fields := strings.Fields(line) // range, rights, offset, device, inode, path
		if len(fields) < 5 || !devices[fields[3]] || fields[4] == "0" {
			continue
		}
		from, to, _ := strings.Cut(fields[0], "-")
		start, err := strconv.ParseUint(from, 16, 64)
		end, err2 := strconv.ParseUint(to, 16, 64)
		if err == nil && err2 == nil {
			list = append(list, machine.Range{Start: machine.Addr(start), End: machine.Addr(end)})
		}
	}
	return list
}

// servingDevices returns the device numbers of file systems of servingTypes, in the format of /proc/PID/maps. mounts is the text of
// /proc/PID/mountinfo (proc_pid_mountinfo(5)).
func servingDevices(mounts string) map[string]bool {
	devices := map[string]bool{}
	for line := range strings.Lines(mounts) {
		about, kind, found := strings.Cut(line, " - ")
		fields, kinds := strings.Fields(about), strings.Fields(kind)
		if !found || len(fields) < 3 || len(kinds) == 0 {
			continue
		}
		kind, _, _ = strings.Cut(kinds[0], ".") // fuse.sshfs
		major, minor, _ := strings.Cut(fields[2], ":")
		a, err := strconv.ParseUint(major, 10, 32)
		b, err2 := strconv.ParseUint(minor, 10, 32)
		if err == nil && err2 == nil && slices.Contains(servingTypes, kind) {
			devices[fmt.Sprintf("%02x:%02x", a, b)] = true
		}
	}
	return devices
}
