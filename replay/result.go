package replay

import (
	"context"
	"strings"
	"unicode/utf8"

	"reframe/deopt/frame"
)

// Schema names the JSON of a [Result].
const Schema = "reframe.replay/v1"

// Kind says what an item is.
type Kind string

// The kinds of item.
const (
	Script Kind = "script"
	Core   Kind = "core"
)

// Outcome says how an item came out.
type Outcome string

// The outcomes.
const (
	OK      Outcome = "ok"
	Skipped Outcome = "skipped" // a script said that it cannot run here
	Partial Outcome = "partial" // of a core: some value or frame is unavailable, or no frame could be resumed that should have been
	Failed  Outcome = "failed"
	// PassedOver is that of a file in a folder that is no core. It is counted and not reported.
	PassedOver Outcome = "passed-over"
)

// Result is what came of an item.
type Result struct {
	Kind    Kind    `json:"kind"`
	Path    string  `json:"path"`
	Outcome Outcome `json:"outcome"`
	// Message says why the outcome is not [OK], or that a script was updated. Of a script that failed it begins with the place,
	// "exit.txtar:12: ".
	Message string `json:"message,omitempty"`
	// Log is what a script printed, where it failed or all of it was asked for.
	Log string `json:"log,omitempty"`
	// MS is how long it took, in milliseconds. [Run] fills it in.
	MS float64 `json:"ms"`

	Found *Found `json:"found,omitempty"` // of a core that could be read
}

// Found is what a core shows.
type Found struct {
	Arch    string `json:"arch"`
	Threads int    `json:"threads"`
	Frames  int    `json:"frames"` // of all threads
	// Exits are the frames that stand at a recorded site, thread by thread, each innermost first; of
	// very many the first ones, and More is how many there are besides.
	Exits []Exit `json:"exits,omitempty"`
	More  int    `json:"more,omitempty"`
	// Resumed is what came of the innermost frame that can be resumed, where the module is known.
	Resumed *Resumed `json:"resumed,omitempty"`
	Notes   []string `json:"notes,omitempty"` // about the core as a whole, such as that it was cut
}

// Exit is a frame at a recorded site.
type Exit struct {
	TID         int           `json:"tid"`
	Frame       int           `json:"frame"`
	Function    string        `json:"function,omitempty"`
	Demangled   string        `json:"demangled,omitempty"` // where it differs
	Offset      *uint64       `json:"offset,omitempty"`
	Record      uint64        `json:"record"`
	Site        string        `json:"site"`
	Moment      frame.Moment  `json:"moment"`
	Resume      *frame.Resume `json:"resume,omitempty"`
	Slots       int           `json:"slots"`
	Unavailable int           `json:"unavailable"` // of the slots
}

// Resumed is what a frame did in the reference interpreter.
type Resumed struct {
	TID      int           `json:"tid"`
	Frame    int           `json:"frame"`
	Result   *frame.Result `json:"result,omitempty"`
	ExitCode *int          `json:"exit_code,omitempty"`
	Steps    uint64        `json:"steps"`
	Output   string        `json:"output,omitempty"` // what the program would have printed; its beginning, of much
}

// Job does one item. It ends soon after ctx does.
type Job func(ctx context.Context, item Item) Result

// Bounds of the text in one result, in bytes: names and messages hold what a core makes them hold.
const (
	maxName    = 512
	maxMessage = 4 << 10
	maxLog     = 256 << 10
)

// bound cuts what is long. Text is valid UTF-8 afterwards, as JSON has it.
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
	const notes = 8 // more than a core that is whole has
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

// clip is at most n bytes of a text and a mark where something is missing.
func clip(s string, n int) string {
	if len(s) > n {
		for n > 0 && !utf8.RuneStart(s[n]) {
			n--
		}
		s = s[:n] + "…"
	}
	return strings.ToValidUTF8(s, "\uFFFD")
}
