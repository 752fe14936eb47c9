package frame

// ResumedSchema names the JSON of a [Resumed].
const ResumedSchema = "reframe.resume/v1"

// Resumed is the output of `reframe resume --json`: the result of running the interpreter from an abstract frame.
type Resumed struct {
	Schema    string `json:"schema"`
	Function  string `json:"function"`            // function of the innermost frame
	Demangled string `json:"demangled,omitempty"` // if it differs from Function
	TID       int    `json:"tid"`
	Frame     int    `json:"frame"`
	Resume    Resume `json:"resume,omitzero"` // resume point of the innermost frame; zero if the VM's own interpreter continued
	// Frames lists the frames that ran as one stack, innermost first: the frame of Function, and its callers if requested. End is the reason why
	// no more frames ran.
	Frames []ResumedFrame `json:"frames"`
	End    string         `json:"end,omitempty"`

	Result   *Result `json:"result,omitempty"` // result of the outermost frame; nil if its function returns nothing or the program exited
	ExitCode *int    `json:"exit_code,omitempty"`
	Steps    uint64  `json:"steps"`
	Output   string  `json:"output"`             // output that the program would have printed
	Writes   int     `json:"writes"`             // number of stores into the interpreter's copy
	PauseUS  *int64  `json:"pause_us,omitempty"` // how long the target was stopped; nil for a core

	// Floats is the floating-point environment of the run. It is nil if that is certainly the default one, or nothing depends on it.
	Floats *FloatEnvironment `json:"floating_point,omitempty"`

	Committed *Committed `json:"committed,omitempty"` // nil if no commit was requested

	With *With `json:"with,omitempty"` // result of a VM's own interpreter; nil if the reference interpreter ran
}

// FloatEnvironment is the floating-point environment of a thread.
type FloatEnvironment struct {
	Known  bool   `json:"known"`            // read from the registers of the thread; if false, the default one is assumed
	Text   string `json:"environment"`      // "default", or the differences from it
	Reason string `json:"reason,omitempty"` // why it is unknown
}

// ResumedFrame is one frame of a stack that ran.
type ResumedFrame struct {
	Frame     int     `json:"frame"`
	Function  string  `json:"function"` // native function
	Demangled string  `json:"demangled,omitempty"`
	Moment    Moment  `json:"moment"`
	Resume    Resume  `json:"resume,omitzero"`
	Given     *Result `json:"given,omitempty"` // the result that the user gave for the frame's pending call
}

// Result is a value that a function returned.
type Result struct {
	Type  string `json:"type"`
	Value string `json:"value"`
}

// With is the result of running VM frames in the user's own interpreter.
type With struct {
	Command     string   `json:"command"`
	Interpreter string   `json:"interpreter,omitempty"` // the name that it reports
	Method      string   `json:"method,omitempty"`      // method of the outermost VM frame
	Position    *int64   `json:"position,omitempty"`
	Bits        Hex      `json:"bits,omitempty"`        // bits of the result, as compiled code returns it
	Threw       *string  `json:"threw,omitempty"`       // the exception that left the outermost frame
	Unsupported string   `json:"unsupported,omitempty"` // why the interpreter does not support it
	Malformed   string   `json:"malformed,omitempty"`   // why no interpreter can ever accept such frames
	Requests    int      `json:"requests"`              // number of requests that it made
	Allocated   uint64   `json:"allocated"`             // bytes
	Tail        []string `json:"tail,omitempty"`        // its last instructions, oldest first, if requested
}
