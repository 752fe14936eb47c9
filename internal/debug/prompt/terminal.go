package prompt

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/term"
)

// Terminal reads commands from a terminal, with completion and a persistent history.
type Terminal struct {
	prompt   *Prompt
	in, out  *os.File
	terminal *term.Terminal
}

// NewTerminal returns a Terminal. history is the file of typed lines, or "" for none.
func NewTerminal(p *Prompt, in, out *os.File, history string) *Terminal {
	t := &Terminal{prompt: p, in: in, out: out}
	t.terminal = term.NewTerminal(struct {
		io.Reader
		io.Writer
	}{typed{in}, out}, name)
	t.terminal.AutoCompleteCallback = t.complete
	t.terminal.History = openHistory(history)
	return t
}

// typed reads the keys. It turns Ctrl-C into Ctrl-U, which discards the typed line: x/term would treat Ctrl-C as the end of input.
type typed struct{ in io.Reader }

func (t typed) Read(p []byte) (int, error) {
	n, err := t.in.Read(p)
	for i := range p[:n] {
		if p[i] == 3 {
			p[i] = 21
		}
	}
	return n, err
}

// Line implements [Lines]. The terminal is raw only while a line is typed, so that Ctrl-C during a command is a signal.
func (t *Terminal) Line() (string, error) {
	state, err := term.MakeRaw(int(t.in.Fd()))
	if err != nil {
		return "", err
	}
	defer term.Restore(int(t.in.Fd()), state)
	if width, height, err := term.GetSize(int(t.out.Fd())); err == nil && width > 0 {
		_ = t.terminal.SetSize(width, height)
	}
	line, err := t.terminal.ReadLine()
	if err == io.EOF {
		fmt.Fprint(t.out, "\r\n")
	}
	return line, err
}

// maxOffers bounds the completions that are shown at once.
const maxOffers = 60

// complete is called for each key.
func (t *Terminal) complete(line string, pos int, key rune) (string, int, bool) {
	if key != '\t' {
		return "", 0, false
	}
	begin, offers := t.prompt.Complete(line[:pos])
	if len(offers) == 0 {
		return line, pos, true
	}
	word := offers[0]
	for _, o := range offers {
		for !strings.HasPrefix(o, word) {
			word = word[:len(word)-1]
		}
	}
	if len(offers) == 1 {
		word += " "
	} else if len(word) == pos-begin {
		shown := offers[:min(len(offers), maxOffers)]
		text := strings.Join(shown, "  ")
		if more := len(offers) - len(shown); more > 0 {
			text += fmt.Sprintf("  and %d more", more)
		}
		_, _ = fmt.Fprintf(t.terminal, "%s\n", t.prompt.Printer.Printable(text))
	}
	return line[:begin] + word + line[pos:], begin + len(word), true
}

// history holds the typed lines, the last one first. It is saved in a file if possible.
type history struct {
	path  string
	lines []string
}

// maxHistory bounds the lines that are kept.
const maxHistory = 1000

func openHistory(path string) *history {
	h := &history{path: path}
	if path == "" {
		return h
	}
	text, err := os.ReadFile(path)
	if err != nil || len(text) > maxHistory*maxLine {
		return h
	}
	for line := range strings.Lines(string(text)) {
		h.put(strings.TrimSpace(line))
	}
	return h
}

func (h *history) put(line string) {
	if line == "" || len(h.lines) > 0 && h.lines[0] == line {
		return
	}
	h.lines = append([]string{line}, h.lines[:min(len(h.lines), maxHistory-1)]...)
}

// Add implements [term.History].
func (h *history) Add(line string) {
	h.put(strings.TrimSpace(line))
	if h.path == "" {
		return
	}
	var b strings.Builder
	for n := len(h.lines) - 1; n >= 0; n-- {
		b.WriteString(h.lines[n] + "\n")
	}
	// Errors are ignored: the session works without a history.
	if os.MkdirAll(filepath.Dir(h.path), 0o700) == nil {
		_ = os.WriteFile(h.path, []byte(b.String()), 0o600)
	}
}

// Len implements [term.History].
func (h *history) Len() int { return len(h.lines) }

// At implements [term.History].
func (h *history) At(n int) string { return h.lines[n] }

// HistoryFile returns the file of the history: below $XDG_STATE_HOME, or ~/.local/state (XDG Base Directory Specification). It returns "" if there
// is no home directory.
func HistoryFile() string {
	dir := os.Getenv("XDG_STATE_HOME")
	if !filepath.IsAbs(dir) {
		home, err := os.UserHomeDir()
		if err != nil {
			return ""
		}
		dir = filepath.Join(home, ".local", "state")
	}
	return filepath.Join(dir, "reframe", "history")
}
