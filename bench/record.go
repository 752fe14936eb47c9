package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/reframe/test/livetest"
)

// mayPause bounds the duration of the stop for a minimal core.
const mayPause = 2 * time.Millisecond

// records measures how long a process is stopped while a core is recorded.
func (b *bench) records() {
	b.section("Pause of a process that is kept as a core, largest gap between two readings of its own clock, %d runs", pauseRounds)
	var rows []row
	for _, threads := range []int{2, 64} {
		p := livetest.C(b, "clock.c", nil, "1", fmt.Sprint(threads-2))
		rows = append(rows, b.recordsOf(p, fmt.Sprintf("record, %d threads", threads))...)
		p.Kill()
	}
	p := livetest.Lli(b, 19, "chain.ll", "mcjit")
	var said, touched times
	interleave(pauseRounds, func() { said.add(b.record(p.PID)) }, func() { touched.add(b.record(p.PID, "--ir", p.IR)) })
	p.Kill()
	rows = append(rows, against("lli, as reframe reports", "with what the interpreter touches", touched, said).atMost(said, mayPause))
	b.print(rows...)
}

// recordsOf measures one process.
func (b *bench) recordsOf(p *livetest.Process, what string) []row {
	var gcore, minimal, writable, said times
	interleave(pauseRounds,
		func() {
			gcore.add(b.gap(p, func() {
				core := filepath.Join(b.TempDir(), "core")
				o, text := b.start(b.gdb, "-nx", "-batch", "-iex", "set auto-load off", "-iex", "set debuginfod enabled off", "-p", fmt.Sprint(p.PID), "-ex", "generate-core-file "+core)
				require.FileExists(b, core, "%s%s", o.output, text)
				require.NoError(b, os.Remove(core))
			}))
		},
		func() { minimal.add(b.gap(p, func() { said.add(b.record(p.PID)) })) },
		func() { writable.add(b.gap(p, func() { b.record(p.PID, "--memory", "writable") })) },
	)
	return []row{against(what, "gdb's generate-core-file", gcore, minimal).atMost(minimal, mayPause), against("", "record --memory writable", writable, minimal),
		against("", "what reframe itself reports", said, minimal)}
}

// record records a core of a process and returns the pause that reframe reports.
func (b *bench) record(pid int, more ...string) time.Duration {
	core := filepath.Join(b.TempDir(), "core")
	o, text := b.start(b.reframe, append([]string{"record", "-p", fmt.Sprint(pid), "-o", core, "--json"}, more...)...)
	require.Zero(b, o.code, text)
	var report struct {
		PauseUS int64 `json:"pause_us"`
	}
	require.NoError(b, json.Unmarshal(o.output, &report))
	require.NoError(b, os.Remove(core))
	return time.Duration(report.PauseUS) * time.Microsecond
}
