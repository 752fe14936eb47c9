package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"example.com/reframe/internal/check/verify"
	"example.com/reframe/internal/report/text"
)

// verifyWriter writes the results of verified exits.
type verifyWriter struct {
	*exitWriter
	k   *verified
	ctx context.Context // ends with the verification

	progress      bool // show counts on the terminal
	began, quiet  time.Time
	shown         bool
	same, not, no uint64 // numbers of exits that are the same, not comparable, different
}

// newVerifyWriter returns a verifyWriter. It shows counts where standard error is a terminal to which nothing else is written.
func newVerifyWriter(ctx context.Context, a *app, k *verified, out *os.File, fail func(error)) *verifyWriter {
	w := &verifyWriter{exitWriter: newExitWriter(a, out, fail), k: k, ctx: ctx, began: time.Now()}
	w.progress = text.IsTerminal(a.stderr) && !k.all && k.interesting == "" && (len(k.command) == 0 || !text.IsTerminal(a.stdout) && out != a.stderr)
	return w
}

// counts adds an exit to the counts, and on a terminal shows them a few times a second.
func (w *verifyWriter) counts(v *verify.Verified) {
	switch v.Status {
	case verify.Same:
		w.same++
	case verify.Different:
		w.no++
	default:
		w.not++
	}
	if now := time.Now(); w.progress && now.Sub(w.began) >= progressAfter && now.After(w.quiet) {
		w.quiet, w.shown = now.Add(progressAfter/5), true
		w.say(fmt.Sprintf("\r%s: %d same, %d different, %d not comparable\x1b[K", text.Count(int(w.same+w.not+w.no), "exit"), w.same, w.no, w.not))
	}
}

// clear removes the counts from the terminal.
func (w *verifyWriter) clear() {
	if w.shown {
		w.shown = false
		w.say("\r\x1b[K")
	}
}

// verified writes one exit: each difference, and with --all every exit.
func (w *verifyWriter) verified(v *verify.Verified) error {
	different := v.Status == verify.Different
	w.counts(v)
	if different {
		w.clear()
		w.quiet = time.Now().Add(3 * flushAfter) // the line is written before this time
		if err := w.k.keep(w.ctx, w.app, v); err != nil {
			return err
		}
		if w.k.book != nil && v.SameAs == 0 {
			if err := w.k.book.Add(v, w.plain(v)); err != nil {
				return err
			}
		}
		if w.k.interesting != "" {
			w.line.Reset()
			text.PrintVerified(&w.line, w.style, v, w.k.reproduce(v))
			if strings.Contains(w.line.String(), w.k.interesting) {
				return errInteresting
			}
			return nil
		}
	}
	switch {
	case !different && !w.k.all, v.SameAs != 0 && !w.k.all && !w.app.json:
		return nil
	case w.app.json:
		r := v.Report()
		if different {
			r.Reproduce = w.k.reproduce(v)
		}
		line, err := w.encoded(r)
		if err != nil {
			return err
		}
		return w.writeExit(line)
	}
	reproduce := ""
	if different {
		reproduce = w.k.reproduce(v)
	}
	w.line.Reset()
	text.PrintVerified(&w.line, w.style, v, reproduce)
	return w.writeExit(w.line.Bytes())
}

// plain returns the description of a difference without colors, and without the last instructions, which a page shows side by side.
func (w *verifyWriter) plain(v *verify.Verified) string {
	short := *v
	short.Interpreter.Tail, short.Native.Tail = nil, nil
	var b bytes.Buffer
	text.PrintVerified(&b, text.Style{}, &short, w.k.reproduce(v))
	return b.String()
}
