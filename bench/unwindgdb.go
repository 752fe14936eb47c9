package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"time"

	"github.com/stretchr/testify/require"
)

// gdbWalk is a gdb script that walks a stack several times, with only the information about the code cached. It neither prints the frames nor looks
// up their names.
const gdbWalk = `
import time, gdb
for _ in range(%d):
    gdb.invalidate_cached_frames()
    began = time.perf_counter_ns()
    frame, count = gdb.newest_frame(), 0
    while frame is not None:
        frame.pc()
        frame, count = frame.older(), count + 1
    print("walked", count, time.perf_counter_ns() - began)
`

var gdbWalked = regexp.MustCompile(`walked (\d+) (\d+)\n`)

// gdbWalks returns gdb's time per frame after it has read the information about the code. The stack must have at least least frames.
func (b *bench) gdbWalks(pid, least int) times {
	script := filepath.Join(b.TempDir(), "walk.py")
	require.NoError(b, os.WriteFile(script, fmt.Appendf(nil, gdbWalk, warmRounds+1), 0o644))
	o, text := b.start(b.gdb, "-nx", "-batch", "-p", fmt.Sprint(pid), "-x", script)
	walks := gdbWalked.FindAllSubmatch(o.output, -1)
	require.Len(b, walks, warmRounds+1, text)
	var series times
	for _, m := range walks[1:] { // the first walk reads the tables
		frames, err := strconv.Atoi(string(m[1]))
		require.NoError(b, err)
		require.GreaterOrEqual(b, frames, least, text)
		ns, err := strconv.ParseInt(string(m[2]), 10, 64)
		require.NoError(b, err)
		series.add(time.Duration(ns / int64(frames)))
	}
	return series
}

// gdbFrames returns the lines of frames in gdb's backtrace.
func (b *bench) gdbFrames(pid int) [][]byte {
	return framesIn(b.runGDB(pid, need{threads: 1}).output)
}

// framesIn returns the lines of frames in the output of gdb or eu-stack, which both begin with # and a number.
func framesIn(output []byte) (lines [][]byte) {
	seen := false // gdb shows the innermost frame also without a command
	for line := range bytes.Lines(output) {
		if bytes.HasPrefix(line, []byte("#0 ")) {
			lines, seen = nil, true
		}
		if seen && frameLine.Match(line) {
			lines = append(lines, line)
		}
	}
	return lines
}

var frameLine = regexp.MustCompile(`^#\d+ `)
