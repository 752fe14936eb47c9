package stress

import (
	"bytes"
	"fmt"
	"slices"

	"example.com/reframe/ptrace"
)

// Outcome is the visible result of a run.
type Outcome struct {
	ExitCode int     `json:"exit_code"`
	Signal   int     `json:"signal,omitempty"` // signal that killed the program; 0: it exited
	Stdout   Output  `json:"stdout"`
	Stderr   Output  `json:"stderr"`
	Seconds  float64 `json:"seconds"`
	TimedOut bool    `json:"timed_out,omitempty"` // stress killed the program
}

// End describes how the run ended.
func (o *Outcome) End() string {
	switch {
	case o.TimedOut:
		return "does not end"
	case o.Signal != 0:
		return "killed by " + ptrace.SignalName(o.Signal)
	}
	return fmt.Sprintf("exit status %d", o.ExitCode)
}

// Difference is one difference between two runs.
type Difference struct {
	What      string  `json:"what"` // status, stdout or stderr
	Untouched string  `json:"untouched"`
	Stressed  string  `json:"stressed"`
	Offset    *uint64 `json:"offset,omitempty"` // of the first byte in a stream; nil if that part was not kept
	Line      int     `json:"line,omitempty"`   // line of this byte, from 1
}

// differences lists the differences between a run and the untouched one. If the run was killed because it took too long, that is the only difference.
func differences(untouched, stressed *Outcome) (list []Difference) {
	if untouched.End() != stressed.End() {
		list = append(list, Difference{What: "status", Untouched: untouched.End(), Stressed: stressed.End()})
	}
	if stressed.TimedOut {
		return list
	}
	for _, s := range []struct {
		name string
		a, b *Output
	}{{"stdout", &untouched.Stdout, &stressed.Stdout}, {"stderr", &untouched.Stderr, &stressed.Stderr}} {
		if s.a.Bytes != s.b.Bytes || s.a.SHA256 != s.b.SHA256 {
			list = append(list, streamDifference(s.name, s.a, s.b))
		}
	}
	return list
}

// maxShown is the number of shown bytes of a line.
const maxShown = 120

func streamDifference(name string, a, b *Output) Difference {
	d := Difference{What: name}
	n := min(len(a.kept), len(b.kept))
	at := 0
	for at < n && a.kept[at] == b.kept[at] {
		at++
	}
	if at == n && min(a.Bytes, b.Bytes) > uint64(n) { // the kept parts are equal
		d.Untouched, d.Stressed = fmt.Sprintf("%d bytes", a.Bytes), fmt.Sprintf("%d bytes", b.Bytes)
		return d
	}
	d.Offset, d.Line = new(uint64(at)), 1+bytes.Count(a.kept[:at], []byte("\n"))
	d.Untouched, d.Stressed = lineAt(a.kept, at), lineAt(b.kept, at)
	return d
}

// lineAt returns the line that contains a byte, or the part around the byte if the line is long.
func lineAt(text []byte, at int) string {
	start := max(bytes.LastIndexByte(text[:at], '\n')+1, at-maxShown/2)
	line, _, _ := bytes.Cut(text[start:], []byte("\n"))
	return string(slices.Clip(line[:min(len(line), maxShown)]))
}
