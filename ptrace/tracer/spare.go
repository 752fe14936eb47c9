//go:build linux

package tracer

import (
	"bytes"
	"os"
	"strconv"
)

// spare asks the kernel to kill another process than this one where memory runs out: its end may end the target. Without CAP_SYS_RESOURCE the kernel
// refuses a lower value than an ancestor's (proc_pid_oom_score_adj(5)). A program that is started later would inherit the value.
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
