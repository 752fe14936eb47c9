//go:build linux

package tracer

import (
	"bytes"
	"os"
	"strconv"
)

// spare asks the kernel to kill other processes first when memory runs out, because the end of the tracer may end the target. Without
// CAP_SYS_RESOURCE the kernel refuses a value below an ancestor's (proc_pid_oom_score_adj(5)). Programs that are started afterwards would inherit the
// value.
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
