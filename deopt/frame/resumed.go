package frame

// ResumedSchema names the JSON of a [Resumed].
const ResumedSchema = "reframe.resume/v1"

// Resumed is the output of `reframe resume --json`: what the interpreter computed from an abstract frame on.
type Resumed struct {
	Schema    string `json:"schema"`
	Function  string `json:"function"`            // the function that was left
	Demangled string `json:"demangled,omitempty"` // where it differs
	TID       int    `json:"tid"`
	Frame     int    `json:"frame"`
	Resume    Resume `json:"resume,omitzero"` // of the innermost frame; none if the VM's own interpreter continued
	// Frames lists the frames that ran as one stack, innermost first: the one above, and its callers if requested. End is the reason why no more of
	// them ran.
	Frames []ResumedFrame `json:"frames"`
	End    string         `json:"end,omitempty"`

	Result   *Result `json:"result,omitempty"` // of the outermost frame; nil where its function returns nothing or the program exited
	ExitCode *int    `json:"exit_code,omitempty"`
	Steps    uint64  `json:"steps"`
	Output   string  `json:"output"`             // what the program would have printed
	Writes   int     `json:"writes"`             // store operations into the interpreter's copy
	PauseUS  *int64  `json:"pause_us,omitempty"` // for how long the target was stopped; nil for a core

	// Floats is the floating-point environment that the run was in; nil where that is the default one for sure, or nothing depends on it.
	Floats *FloatEnvironment `json:"floating_point,omitempty"`

	Committed *Committed `json:"committed,omitempty"` // nil if no commit was requested

	With *With `json:"with,omitempty"` // what a VM's own interpreter came to; nil where the reference interpreter ran
}

// FloatEnvironment is the floating-point environment of a thread.
type FloatEnvironment struct {
	Known  bool   `json:"known"`            // read from the registers of the thread; otherwise it is assumed to be the default one
	Text   string `json:"environment"`      // "default", or what differs from it
	Reason string `json:"reason,omitempty"` // why it is not known
}

// ResumedFrame is one frame of a stack that ran.
type ResumedFrame struct {
	Frame     int     `json:"frame"`
	Function  string  `json:"function"` // that was left
	Demangled string  `json:"demangled,omitempty"`
	Moment    Moment  `json:"moment"`
	Resume    Resume  `json:"resume,omitzero"`
	Given     *Result `json:"given,omitempty"` // the result of its call that the user gave
}

// Result is a value that a function returned.
type Result struct {
	Type  string `json:"type"`
	Value string `json:"value"`
}

// With is the result of running VM frames in the user's own interpreter.
type With struct {
	Command     string   `json:"command"`
	Interpreter string   `json:"interpreter,omitempty"` // as it calls itself
	Method      string   `json:"method,omitempty"`      // of the outermost VM frame
	Position    *int64   `json:"position,omitempty"`
	Bits        Hex      `json:"bits,omitempty"`        // of the result, as compiled code returns it
	Threw       *string  `json:"threw,omitempty"`       // the exception that left the outermost frame
	Unsupported string   `json:"unsupported,omitempty"` // why the interpreter does not support it
	Malformed   string   `json:"malformed,omitempty"`   // why no interpreter can ever accept such frames
	Requests    int      `json:"requests"`              // that it made
	Allocated   uint64   `json:"allocated"`             // bytes
	Tail        []string `json:"tail,omitempty"`        // its last instructions, oldest first, if requested
}
