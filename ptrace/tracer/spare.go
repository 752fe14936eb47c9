//go:build linux

package tracer

import (
	"bytes"
	"os"
	"strconv"
)

// spare asks the kernel to prefer killing other processes when memory runs out, since the tracer's end may end the target. Without CAP_SYS_RESOURCE
// the kernel refuses a value below an ancestor's (proc_pid_oom_score_adj(5)). Programs started afterwards would inherit the value.
func spare() {
	const file, lowest = "/proc/self/oom_score_adj", -900
	text, err := os.ReadFile(file)
	if err != nil {
		return
	}
	now, err := strconv.Atoi(string(bytes.TrimSpace(text)))
	for _, value := range []int{lowest, 0} {
		if err == nil && value < now && os.WriteFile(file, []byte(strconv.Itoa(value)), 0) == nil {
			return
		}
	}
}
