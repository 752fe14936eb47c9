package replay

import (
	"context"
	"strings"
	"unicode/utf8"

	"example.com/reframe/deopt/frame"
)

// Schema names the JSON of a [Result].
const Schema = "reframe.replay/v1"

// Kind says whether an item is a script or a core.
type Kind string

// The values of [Kind].
const (
	Script Kind = "script"
	Core   Kind = "core"
)

// Outcome says how the processing of an item ended.
type Outcome string

// The values of [Outcome].
const (
	OK      Outcome = "ok"
	Skipped Outcome = "skipped" // the script used the command skip
	Partial Outcome = "partial" // the core has an unavailable value or frame, or has no frame that can be resumed
	Failed  Outcome = "failed"
	// PassedOver is the outcome of a file in a folder that is not a core. It is counted and not reported.
	PassedOver Outcome = "passed-over"
)

// Result describes how the processing of one item ended, and what was found.
type Result struct {
	Kind    Kind    `json:"kind"`
	Path    string  `json:"path"`
	Outcome Outcome `json:"outcome"`
	// Message is the reason if the outcome is not [OK], or a note that a script was updated. For a failed script it begins with the position,
	// "exit.txtar:12: ".
	Message string `json:"message,omitempty"`
	// Log is the output of a script, if it failed or all output was requested.
	Log string `json:"log,omitempty"`
	// MS is the time of the item in milliseconds. [Run] fills it in.
	MS float64 `json:"ms"`

	Found *Found `json:"found,omitempty"` // for a core that could be read
}

// Found describes the frames of a core.
type Found struct {
	Arch    string `json:"arch"`
	Threads int    `json:"threads"`
	Frames  int    `json:"frames"` // number of frames of all threads
	// Exits lists the frames at a recorded site, by thread, innermost first. If there are very many, Exits has the first ones, and More counts the
	// others.
	Exits []Exit `json:"exits,omitempty"`
	More  int    `json:"more,omitempty"`
	// Resumed is the result of the innermost frame that can be resumed, if its module is known.
	Resumed *Resumed `json:"resumed,omitempty"`
	Notes   []string `json:"notes,omitempty"` // about the core as a whole, such as its truncation
}

// Exit is a frame at a recorded site.
type Exit struct {
	TID         int           `json:"tid"`
	Frame       int           `json:"frame"`
	Function    string        `json:"function,omitempty"`
	Demangled   string        `json:"demangled,omitempty"` // empty if it equals Function
	Offset      *uint64       `json:"offset,omitempty"`
	Record      uint64        `json:"record"`
	Site        string        `json:"site"`
	Moment      frame.Moment  `json:"moment"`
	Resume      *frame.Resume `json:"resume,omitempty"`
	Slots       int           `json:"slots"`
	Unavailable int           `json:"unavailable"` // number of unavailable slots
}

// Resumed is the result of a frame in the reference interpreter.
type Resumed struct {
	TID      int           `json:"tid"`
	Frame    int           `json:"frame"`
	Result   *frame.Result `json:"result,omitempty"`
	ExitCode *int          `json:"exit_code,omitempty"`
	Steps    uint64        `json:"steps"`
	Output   string        `json:"output,omitempty"` // the output of the program; truncated if it is long
}

// Job processes one item. It ends soon after ctx does.
type Job func(ctx context.Context, item Item) Result

// Bounds of the text in one result, in bytes: a core determines the length of names and messages.
const (
	maxName    = 512
	maxMessage = 4 << 10
	maxLog     = 256 << 10
)

// bound truncates long text and makes it valid UTF-8, because JSON requires that.
func (r *Result) bound() {
	r.Message, r.Log = clip(r.Message, maxMessage), clip(r.Log, maxLog)
	f := r.Found
	if f == nil {
		return
	}
	for i := range f.Exits {
		x := &f.Exits[i]
		x.Function, x.Demangled = clip(x.Function, maxName), clip(x.Demangled, maxName)
		if x.Resume != nil {
			x.Resume = &frame.Resume{Function: clip(x.Resume.Function, maxName), Demangled: clip(x.Resume.Demangled, maxName), Block: clip(x.Resume.Block, maxName),
				After: clip(x.Resume.After, maxName), At: clip(x.Resume.At, maxName)}
		}
	}
	const notes = 8 // more notes than a complete core has
	f.Notes = f.Notes[:min(len(f.Notes), notes)]
	for i := range f.Notes {
		f.Notes[i] = clip(f.Notes[i], maxName)
	}
	if g := f.Resumed; g != nil {
		g.Output = clip(g.Output, maxMessage)
		if g.Result != nil {
			g.Result = &frame.Result{Type: clip(g.Result.Type, maxName), Value: clip(g.Result.Value, maxMessage)}
		}
	}
}

// clip returns at most n bytes of a text, with a mark if it was longer.
func clip(s string, n int) string {
	if len(s) > n {
		for n > 0 && !utf8.RuneStart(s[n]) {
			n--
		}
		s = s[:n] + "…"
	}
	return strings.ToValidUTF8(s, "\uFFFD")
}
