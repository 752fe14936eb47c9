package main

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/reframe/test/livetest"
)

const resumeRounds = 10

// resumedReport holds the members of the JSON of `reframe resume` that are used.
type resumedReport struct {
	Result  struct{ Value string }
	PauseUS int64 `json:"pause_us"`
}

// resumption measures how long a process is stopped while one of its frames runs in the interpreter. Because no other tool does that, the comparison
// is with reframe's own capture of the process.
func (b *bench) resumption() {
	b.section("Time the process is stopped while a frame is resumed (deoptimize.ll, MCJIT), %d runs", resumeRounds)
	layout := livetest.Testdata(b, "programs", "deoptimize.layout.json")
	var rows []row
	for _, version := range []int{19, 22} {
		p := livetest.Lli(b, version, "deoptimize.ll", "mcjit")
		var frames, resume times
		interleave(resumeRounds,
			func() {
				_, pause := b.runFrames(p.PID, need{threads: 1, function: "sum_opt"})
				frames.add(pause)
			},
			func() { resume.add(b.runResume(p, layout)) },
		)
		p.Kill()
		rows = append(rows, against(fmt.Sprintf("resume, lli-%d", version), "reframe frames", frames, resume))
	}
	b.print(rows...)
}

// runResume resumes the exit of sum_opt, whose result is the sum of the squares below 1000, and returns the reported pause.
func (b *bench) runResume(p *livetest.Process, layout string) time.Duration {
	o, text := b.start(b.reframe, "resume", "-p", fmt.Sprint(p.PID), "--ir", p.IR, "--layout", layout, "--json")
	var report resumedReport
	require.NoError(b, json.Unmarshal(o.output, &report), text)
	require.Equal(b, "332833500", report.Result.Value, text)
	require.Positive(b, report.PauseUS, text)
	return time.Duration(report.PauseUS) * time.Microsecond
}
