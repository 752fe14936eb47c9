package main

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"sync"
	"time"

	"example.com/reframe/internal/check/trace"
	"example.com/reframe/internal/report/text"
	"example.com/reframe/ptrace"
)

// exitWriter writes the lines of exits. It writes several complete lines at a time.
type exitWriter struct {
	app   *app
	style text.Style
	json  *json.Encoder
	line  bytes.Buffer
	fail  func(error) // called for the first write that fails
	to    *os.File

	mu    sync.Mutex
	out   *bufio.Writer
	err   error
	queue *outputQueue // the queue to which out writes
	words *outputQueue // the queue for standard error; the same as queue if exits go to standard error

	ctx    context.Context // ends a wait for the reader
	letRun func() error    // lets the process run while the writer waits for the reader
	lossy  bool            // drop exits instead of waiting

	dropped   uint64 // number of exits for which the queue had no room
	unsaid    int    // number of warnings for which the queue had no room
	unwritten []byte // the line of the last exit, if it was dropped

	stop, stopped chan struct{}

	asked  map[uint64]bool   // ids of records for which a hint was determined
	wanted map[string]string // one hint for each kind of flag that would name values
}

// maxAsked bounds the number of records in a trace for which exitWriter determines a hint.
const maxAsked = 1000

// hints prints once which flags would name the values that were shown without a name.
func (w *exitWriter) hints() {
	for _, kind := range slices.Sorted(maps.Keys(w.wanted)) {
		fmt.Fprintln(text.Fold(w.app.stderr), text.Printable(w.wanted[kind]))
	}
}

// Lines are written after flushAfter at the latest, or when more than flushAt bytes are waiting.
const (
	flushAfter = 100 * time.Millisecond
	flushAt    = 64 << 10
)

func newExitWriter(a *app, to *os.File, fail func(error)) *exitWriter {
	w := &exitWriter{app: a, style: a.styleOf(to), fail: fail, to: to, queue: newOutputQueue(linesOf(a, to)), stop: make(chan struct{}), stopped: make(chan struct{}),
		asked: map[uint64]bool{}, wanted: map[string]string{}, ctx: context.Background()}
	w.out = bufio.NewWriterSize(w.queue, flushAt)
	if w.words = w.queue; to != a.stderr {
		w.words = newOutputQueue(a.stderr)
	}
	w.json = json.NewEncoder(&w.line)
	w.json.SetEscapeHTML(false)
	go w.flushing()
	return w
}

// linesOf returns the writer for lines. JSON, with one object a line, is not folded.
func linesOf(a *app, to *os.File) io.Writer {
	if a.json {
		return to
	}
	return text.Fold(to)
}

// holds sets the callback for a stalled reader. The process is stopped while the writer waits, and letRun resumes it. The wait ends when ctx is done.
func (w *exitWriter) holds(ctx context.Context, letRun func() error) { w.ctx, w.letRun = ctx, letRun }

func (w *exitWriter) flushing() {
	defer close(w.stopped)
	tick := time.NewTicker(flushAfter)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			w.mu.Lock()
			w.failed(w.out.Flush())
			w.mu.Unlock()
		case <-w.stop:
			return
		}
	}
}

// failed stores the first error.
func (w *exitWriter) failed(err error) {
	if err != nil && w.err == nil {
		w.err = err
		w.fail(err)
	}
}

// write writes a line.
func (w *exitWriter) write(line []byte) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	_, err := w.out.Write(line)
	w.failed(err)
	return w.err
}

// writeExit writes the line of an exit. If the queue has no room, it waits; with lossy it drops the line.
func (w *exitWriter) writeExit(line []byte) error {
	w.unwritten = nil
	switch {
	case w.queue.fits(len(line)):
	case w.lossy:
		w.dropped++
		w.unwritten = bytes.Clone(line)
		return nil
	case w.letRun != nil:
		var failed error
		err := w.queue.wait(w.ctx, len(line), func() { failed = w.letRun() })
		if err = cmp.Or(err, failed); err != nil && !errors.Is(err, ptrace.ErrProcessExited) {
			return err
		}
	}
	return w.write(line)
}

// gap reports a period without breakpoints, in which exits are missing.
func (w *exitWriter) gap(g trace.Gap) error {
	if w.app.json {
		w.warnObject(g.String())
		return w.err
	}
	return w.write(fmt.Appendf(nil, "%s  %s\n", g.Seconds(), w.style.Yellow(g.String())))
}

// writeLast writes the last exit of the trace if its line was dropped.
func (w *exitWriter) writeLast() {
	if w.unwritten != nil {
		w.dropped--
		_ = w.write(w.unwritten) // close returns the error
		w.unwritten = nil
	}
}

// close writes the remaining lines and returns the first error of all writes.
func (w *exitWriter) close() error {
	close(w.stop)
	<-w.stopped
	w.failed(w.out.Flush())
	if w.unsaid > 0 {
		_, _ = w.words.Write([]byte(w.leftOut())) // the next line returns the error
	}
	w.failed(w.queue.finish(w.ctx))
	if w.words != w.queue {
		_ = w.words.finish(w.ctx) // the error cannot be reported anywhere
	}
	return w.err
}

func (w *exitWriter) object(v any) error {
	line, err := w.encoded(v)
	if err != nil {
		return err
	}
	return w.write(line)
}

// encoded returns an object as a line of JSON. The line is valid until the next call.
func (w *exitWriter) encoded(v any) ([]byte, error) {
	w.line.Reset()
	err := w.json.Encode(v)
	return text.SafeJSON(w.line.Bytes()), err
}

func (w *exitWriter) summary(s any) { _ = w.object(s) } // close returns the error

// alone reports whether JSON objects go to standard error: nothing else may be written there.
func (w *exitWriter) alone() bool { return w.app.json && w.to == w.app.stderr }

// warningSchema names the schema of a warning in JSON.
const warningSchema = "reframe.warning/v1"

// warn writes a warning. It counts warnings for which the queue has no room, and reports the number when it has room again.
func (w *exitWriter) warn(message string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.unsaid > 0 && !w.offered(w.leftOut()) {
		w.unsaid++
		return
	}
	w.unsaid = 0
	if !w.offered(w.warning(message)) {
		w.unsaid = 1
	}
}

// leftOut returns the warning that other warnings were left out.
func (w *exitWriter) leftOut() string {
	return w.warning(text.Count(w.unsaid, "warning") + " dropped: the reader of the output was too slow")
}

// warning returns a warning in the format of the output.
func (w *exitWriter) warning(message string) string {
	if !w.alone() {
		return "reframe: " + text.PrintableLines(message) + "\n"
	}
	line, _ := json.Marshal(warningObject{warningSchema, message}) // two strings: no error is possible
	return string(text.SafeJSON(append(line, '\n')))
}

// warningObject is the JSON of a warning.
type warningObject struct {
	Schema string `json:"schema"`
	Text   string `json:"text"`
}

// warnObject writes the JSON of a warning, regardless of the queue's room, because such warnings are few.
func (w *exitWriter) warnObject(text string) {
	_ = w.object(warningObject{warningSchema, text}) // close returns the error
}

// say writes to standard error without waiting for its reader.
func (w *exitWriter) say(text string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.offered(text)
}

// offered writes to standard error if the queue has room, and reports whether it has. w must be locked.
func (w *exitWriter) offered(message string) bool {
	if w.words == w.queue { // exits and messages share one queue, which folds the lines of both
		w.failed(w.out.Flush()) // write the exits before the message
		return w.words.offer(message)
	}
	return w.words.offer(text.Folded(w.app.stderr, message))
}

// ended is the error with which a verb ends, or nil.
type ended struct{ error }

// why returns the message of the error.
func (e ended) why() string {
	if e.error == nil {
		return ""
	}
	return e.Error()
}

// silent returns the error without its message, which was already printed.
func (e ended) silent() error {
	if e.error == nil {
		return nil
	}
	code := exitFailed
	if s := (*status)(nil); errors.As(e.error, &s) {
		code = s.code
	}
	return &status{code, ""}
}

// exit writes the lines of one exit, or its JSON object.
func (w *exitWriter) exit(x *trace.Exited) error {
	if w.app.json {
		line, err := w.encoded(x.Report())
		if err != nil {
			return err
		}
		return w.writeExit(line)
	}
	w.hint(x)
	w.line.Reset()
	text.PrintExit(&w.line, w.style, x)
	return w.writeExit(w.line.Bytes())
}

// hint determines, once for each record, what would name the values of an exit.
func (w *exitWriter) hint(x *trace.Exited) {
	if f := x.Frame; f != nil && f.Record != nil && !w.asked[f.Record.ID] && len(w.asked) < maxAsked {
		w.asked[f.Record.ID] = true
		if kind, text := f.Wants(); kind != "" && w.wanted[kind] == "" {
			w.wanted[kind] = text
		}
	}
}

// planned writes a line about one byte of code that a trace would overwrite.
func (w *exitWriter) planned(p *trace.Planned) {
	if w.app.json {
		_ = w.object(p) // close returns the error
		return
	}
	w.line.Reset()
	text.PrintPlanned(&w.line, p)
	_ = w.write(w.line.Bytes())
}
