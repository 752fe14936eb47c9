//go:build linux

package tracer

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
)

// frozen reports whether a thread is in a control group that is frozen or being frozen (cgroups(7)). Such a thread executes no instruction until the
// group is thawed. frozen returns false if the groups cannot be read.
func frozen(tid int) bool {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cgroup", tid))
	for line := range strings.Lines(string(text)) {
		id, rest, _ := strings.Cut(strings.TrimSpace(line), ":")
		controllers, path, _ := strings.Cut(rest, ":")
		for _, m := range cgroupMounts() {
			dir, inside := m.dir(path)
			switch {
			case !inside:
			case m.unified && id == "0" && controllers == "" && m.frozen(dir):
				return true
			case !m.unified && slices.Contains(strings.Split(controllers, ","), "freezer") && !fileSays(dir, "freezer.state", "THAWED"):
				return true
			}
		}
	}
	return false
}

// cgroupMount is a mount of cgroup2, or of the freezer controller of version 1.
type cgroupMount struct {
	root, at string // the mounted group, and the mount point
	unified  bool
}

// cgroupMounts returns the mounts of control groups that this process sees (proc_pid_mountinfo(5)).
var cgroupMounts = sync.OnceValue(func() (list []cgroupMount) {
	text, _ := os.ReadFile("/proc/self/mountinfo") // if it cannot be read, no group is known
	for line := range strings.Lines(string(text)) {
		mount, system, _ := strings.Cut(line, " - ")
		place, kind := strings.Fields(mount), strings.Fields(system)
		if len(place) < 5 || len(kind) < 3 {
			continue
		}
		unified := kind[0] == "cgroup2"
		if unified || kind[0] == "cgroup" && slices.Contains(strings.Split(kind[2], ","), "freezer") {
			list = append(list, cgroupMount{root: place[3], at: place[4], unified: unified})
		}
	}
	return list
})

// dir returns the directory of a group, if the group is below the mount.
func (m cgroupMount) dir(path string) (dir string, inside bool) {
	relative, err := filepath.Rel(m.root, path)
	if err != nil || relative == ".." || strings.HasPrefix(relative, "../") {
		return "", false
	}
	return filepath.Join(m.at, relative), true
}

// frozen reports whether a cgroup2 group or one of its ancestors is frozen.
func (m cgroupMount) frozen(dir string) bool {
	if events, err := os.ReadFile(filepath.Join(dir, "cgroup.events")); err == nil && strings.Contains(string(events), "frozen 1") {
		return true
	}
	for ; len(dir) > len(m.at); dir = filepath.Dir(dir) {
		if text, err := os.ReadFile(filepath.Join(dir, "cgroup.freeze")); err == nil && strings.TrimSpace(string(text)) == "1" {
			return true
		}
	}
	return false
}

// fileSays reports whether a file of a group has a value. It returns true if the file cannot be read, as in the root group.
func fileSays(dir, name, value string) bool {
	text, err := os.ReadFile(filepath.Join(dir, name))
	return err != nil || strings.TrimSpace(string(text)) == value
}
