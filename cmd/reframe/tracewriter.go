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
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"example.com/reframe/deopt"
	"example.com/reframe/deopt/frame"
	"example.com/reframe/internal/check/trace"
	"example.com/reframe/internal/machine/names"
	"example.com/reframe/internal/report/text"
	fold "example.com/reframe/internal/report/text"
	"example.com/reframe/ptrace"
)

// exitWriter writes exits, each as a whole, several at a time.
type exitWriter struct {
	app   *app
	style style
	json  *json.Encoder
	line  bytes.Buffer
	fail  func(error) // called for the first write that fails
	to    *os.File

	mu    sync.Mutex
	out   *bufio.Writer
	err   error
	queue *outputQueue // out writes to it
	words *outputQueue // for standard error; the same as queue if exits go to standard error

	ctx    context.Context // ends a wait for the reader
	letRun func() error    // lets the process run during that wait
	lossy  bool            // drop exits instead of waiting

	dropped   uint64 // number of exits for which the queue had no room
	unsaid    int    // number of warnings for which it had no room
	unwritten []byte // the line of the last exit, if it was dropped

	stop, stopped chan struct{}

	asked  map[uint64]bool   // ids of the records that hints has examined
	wanted map[string]string // a hint for each kind of flag that would name values
}

// maxAsked bounds the records of a trace for which exitWriter determines what would name their values.
const maxAsked = 1000

// hints prints, once, which flags would name the values that were shown without a name.
func (w *exitWriter) hints() {
	for _, kind := range slices.Sorted(maps.Keys(w.wanted)) {
		fmt.Fprintln(foldTo(w.app.stderr), printable(w.wanted[kind]))
	}
}

// Lines are written at the latest after flushAfter, or when more than flushAt bytes are waiting.
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
	return foldTo(to)
}

// holds sets the callback for a stalled reader: the process is stopped while the writer waits, and letRun resumes it. The wait ends when ctx is done.
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

// failed keeps the first error.
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
		if err = cmp.Or(err, failed); err != nil && !errors.Is(err, ptrace.ErrGone) {
			return err
		}
	}
	return w.write(line)
}

// gap reports a time without breakpoints, in which exits are missing.
func (w *exitWriter) gap(g trace.Gap) error {
	if w.app.json {
		w.warnObject(g.String())
		return w.err
	}
	return w.write(fmt.Appendf(nil, "%s  %s\n", g.Seconds(), w.style.Yellow(g.String())))
}

// writeLast writes the exit at which the trace stopped, if its line was dropped.
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
		_ = w.words.finish(w.ctx) // there is nowhere to report it
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

// encoded returns the line of an object. It is valid until the next one.
func (w *exitWriter) encoded(v any) ([]byte, error) {
	w.line.Reset()
	err := w.json.Encode(v)
	return safeJSON(w.line.Bytes()), err
}

func (w *exitWriter) summary(s any) { _ = w.object(s) } // close returns the error

// alone reports whether JSON objects go to standard error: nothing else may be written there.
func (w *exitWriter) alone() bool { return w.app.json && w.to == w.app.stderr }

// warningSchema names the JSON of a warning.
const warningSchema = "reframe.warning/v1"

// warn writes a warning. It counts those for which the queue has no room, and reports them once it has.
func (w *exitWriter) warn(text string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.unsaid > 0 && !w.offered(w.leftOut()) {
		w.unsaid++
		return
	}
	w.unsaid = 0
	if !w.offered(w.warning(text)) {
		w.unsaid = 1
	}
}

// leftOut returns the warning that others were left out.
func (w *exitWriter) leftOut() string {
	return w.warning(count(w.unsaid, "warning") + " dropped: the reader of the output was too slow")
}

// warning returns a warning as it is written.
func (w *exitWriter) warning(text string) string {
	if !w.alone() {
		return "reframe: " + printableLines(text) + "\n"
	}
	line, _ := json.Marshal(warningObject{warningSchema, text}) // two strings: no error is possible
	return string(safeJSON(append(line, '\n')))
}

// warningObject is the JSON of a warning.
type warningObject struct {
	Schema string `json:"schema"`
	Text   string `json:"text"`
}

// warnObject writes the JSON of a warning, for which there is always room: such warnings are few.
func (w *exitWriter) warnObject(text string) {
	_ = w.object(warningObject{warningSchema, text}) // close returns the error
}

// say writes to standard error without waiting for its reader.
func (w *exitWriter) say(text string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.offered(text)
}

// offered writes to standard error if the queue has room, and reports whether it has. w is locked.
func (w *exitWriter) offered(text string) bool {
	if w.words == w.queue { // out folds lines
		w.failed(w.out.Flush()) // keeps the order of the output
		return w.words.offer(text)
	}
	return w.words.offer(fold.Folded(w.app.stderr, text))
}

// ended is the error that a verb ends with, or nil.
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

// exit writes an exit.
func (w *exitWriter) exit(x *trace.Exited) error {
	if w.app.json {
		line, err := w.encoded(x.Report())
		if err != nil {
			return err
		}
		return w.writeExit(line)
	}
	w.line.Reset()
	fmt.Fprintf(&w.line, "%s  %d", x.Seconds(), x.Thread.ID)
	if x.Thread.Name != "" { // empty if the thread has ended
		fmt.Fprintf(&w.line, " %s", printable(x.Thread.Name))
	}
	w.place(x)
	if f := x.Frame; f != nil && f.Record != nil && !w.asked[f.Record.ID] && len(w.asked) < maxAsked {
		w.asked[f.Record.ID] = true
		if kind, text := f.Wants(); kind != "" && w.wanted[kind] == "" {
			w.wanted[kind] = text
		}
	}
	for i := range x.Frames {
		text.PrintFrame(&w.line, w.style, &x.Frames[i].Frame)
	}
	if len(x.Frames) > 0 && !x.End.Complete {
		fmt.Fprintf(&w.line, "  %s\n", w.style.Yellow(printable(x.End.Reason)))
	}
	return w.writeExit(w.line.Bytes())
}

// Place writes the end of the line of an exit: the location, and the slots unless the frames show them.
func (w *exitWriter) place(x *trace.Exited) {
	b := &w.line
	f := x.Frame
	b.WriteString("  ")
	if x.Point.Symbol != "" {
		fmt.Fprintf(b, "%s called by ", printable(names.Demangled(x.Point.Symbol)))
	}
	if f == nil {
		fmt.Fprintf(b, "%s\n", w.style.Yellow("unknown caller: "+printable(x.End.Reason)))
		return
	}
	b.WriteString(w.style.Bold(text.Place(&f.Frame)))
	if f.Record == nil {
		fmt.Fprintf(b, "  %s\n", w.style.Yellow("no record"))
		return
	}
	if len(f.Source) > 0 {
		fmt.Fprintf(b, " at %s", printable(deopt.SourceText(f.Source[0])))
	}
	fmt.Fprintf(b, "  record %d %s", f.Record.ID, f.Record.Site)
	if m := f.Record.Moment; m != frame.Before && m != frame.Unknown {
		fmt.Fprintf(b, ", %s", strings.ReplaceAll(string(m), "-", " "))
	}
	if len(x.Frames) > 0 {
		b.WriteByte('\n')
		return
	}
	if vm := f.VM; vm != nil && len(vm.Frames) > 0 {
		w.vmFrames(vm)
		b.WriteByte('\n')
		return
	}
	w.slots(f.Slots)
	for i := range f.Also {
		fmt.Fprintf(b, "  or record %d %s", f.Also[i].Record.ID, f.Also[i].Record.Site)
		w.slots(f.Also[i].Slots)
	}
	if f.VM != nil {
		fmt.Fprintf(b, "  %s", w.style.Yellow("no VM frames: "+printable(f.VM.Error)))
	}
	if len(f.Slots) == 0 && len(f.Notes) > 0 {
		fmt.Fprintf(b, "  %s", w.style.Dim("("+printable(f.Notes[len(f.Notes)-1])+")"))
	}
	b.WriteByte('\n')
}

// shortReason bounds a reason on the line of an exit, in characters.
const shortReason = 40

// vmFrames writes the VM frames of an exit, with the values of the innermost one.
func (w *exitWriter) vmFrames(vm *frame.VM) {
	b := &w.line
	for n := range vm.Frames {
		f := &vm.Frames[n]
		if n > 0 {
			b.WriteString("  in ")
		} else {
			b.WriteString("  ")
		}
		b.WriteString(text.VMTitle(w.style, f))
		if f.Reason != "" {
			b.WriteString(" " + w.style.Yellow("("+printable(f.Reason)+")"))
		}
		if n > 0 {
			continue
		}
		for k := range f.Locals {
			w.placed("local", &f.Locals[k])
		}
		for k := range f.Stack {
			w.placed("stack", &f.Stack[k])
		}
		for _, name := range slices.Sorted(maps.Keys(f.Extra)) {
			v := f.Extra[name]
			fmt.Fprintf(b, " %s=%s", printable(name), w.vmValue(&v))
		}
	}
}

// placed writes a local or a place on the stack.
func (w *exitWriter) placed(what string, v *frame.VMValue) {
	for _, part := range [...]string{" ", text.PlaceOf(what, v), "=", w.vmValue(v)} {
		w.line.WriteString(part)
	}
}

// vmValue returns a value as it appears on the line of an exit.
func (w *exitWriter) vmValue(v *frame.VMValue) string {
	switch {
	case v.Object != nil:
		return fmt.Sprintf("object(%d)", *v.Object)
	case v.Status == frame.Missing:
		return w.style.Yellow("unavailable(" + shortened(v.Reason) + ")")
	case v.Status == frame.Dead, v.Status == frame.Undefined:
		return string(v.Status)
	case v.Status == frame.Guessed:
		return w.style.Yellow("guess(" + printable(cmp.Or(v.Value, string(v.Hex))) + ")")
	}
	return printable(cmp.Or(v.Value, string(v.Hex)))
}

// shortened returns a reason as it appears on the line of an exit.
func shortened(reason string) string {
	why := printable(reason)
	if utf8.RuneCountInString(why) > shortReason {
		why = strings.TrimRight(string([]rune(why)[:shortReason]), " ") + "…"
	}
	return why
}

func (w *exitWriter) slots(list []frame.Slot) {
	for i := range list {
		w.line.WriteByte(' ')
		if i == 0 {
			w.line.WriteByte(' ')
		}
		w.slot(&list[i])
	}
}

func (w *exitWriter) slot(s *frame.Slot) {
	name := printable(s.Name)
	if name == "" {
		name = fmt.Sprintf("#%d", s.Index)
	}
	w.line.WriteString(name)
	if s.Operand != "" {
		w.line.WriteString("←" + printable(s.Operand))
	}
	w.line.WriteByte('=')
	switch {
	case s.Status == frame.Undefined:
		w.line.WriteString("undef")
	case s.Status == frame.Missing:
		w.line.WriteString(w.style.Yellow("unavailable(" + shortened(s.Reason) + ")"))
	default:
		value := cmp.Or(s.Value, string(s.Hex))
		if s.Status == frame.Guessed {
			value = w.style.Yellow("guess(" + printable(value) + ")")
		}
		w.line.WriteString(value)
	}
}

// planned writes one byte that a trace would overwrite.
func (w *exitWriter) planned(p *trace.Planned) {
	if w.app.json {
		_ = w.object(p) // close returns the error
		return
	}
	is := "????" // the memory is unreadable
	if p.Byte != "" {
		is = string(p.Byte)
	}
	becomes := "→ 0xcc"
	switch {
	case p.Hardware:
		becomes = "stays "
	case p.Shared:
		becomes = "shared"
	}
	line := func(where, what string) {
		_ = w.write(fmt.Appendf(nil, "%s  %4s %s  %s  %s\n", p.Address, is, becomes, pad(where, where, text.FunctionWidth), what))
	}
	if p.Symbol != "" {
		line(printable(names.Demangled(p.Symbol)), "entry")
	}
	for _, x := range p.Exits {
		where := fmt.Sprintf("(+%#x)", x.Offset)
		if x.Function != "" {
			where = fmt.Sprintf("%s+%#x", printable(names.Demangled(x.Function)), x.Offset)
		}
		what := fmt.Sprintf("record %d, %s, %s", x.Record, x.Site, strings.ReplaceAll(string(x.Moment), "-", " "))
		if x.Note != "" {
			what += " (" + printable(x.Note) + ")"
		}
		line(where, what)
	}
}
