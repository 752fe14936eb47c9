package ptrace

import (
	"fmt"
	"os"

	"example.com/reframe/internal/machine"
	"example.com/reframe/ptrace/system"
)

// readMaps reads /proc/PID/maps.
func readMaps(pid int) ([]machine.Mapping, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/maps", pid))
	if err != nil {
		return nil, explain(pid, "cannot read its mappings", err)
	}
	if len(text) == 0 {
		return nil, &Error{pid, "cannot read its mappings", ErrProcessExited, ""}
	}
	maps, err := system.ParseMaps(string(text))
	if err != nil {
		return nil, &Error{pid, "cannot read its mappings", err, ""}
	}
	return maps, nil
}
