package frame

// ResumedSchema identifies the JSON of a [Resumed].
const ResumedSchema = "reframe.resume/v1"

// Resumed is the output of `reframe resume --json`: the result of running the interpreter from an abstract frame.
type Resumed struct {
	Schema    string `json:"schema"`
	Function  string `json:"function"`            // function of the innermost frame
	Demangled string `json:"demangled,omitempty"` // if it differs from Function
	TID       int    `json:"tid"`
	Frame     int    `json:"frame"`
	Resume    Resume `json:"resume,omitzero"` // resume point of the innermost frame; zero if the VM's own interpreter continued
	// Frames lists the frames that ran as one stack, innermost first: the frame of Function, and its callers if they were requested. End says why no
	// more callers ran.
	Frames []ResumedFrame `json:"frames"`
	End    string         `json:"end,omitempty"`

	Result   *Result `json:"result,omitempty"` // result of the outermost frame; nil if its function returns nothing, or if the program called exit
	ExitCode *int    `json:"exit_code,omitempty"`
	Steps    uint64  `json:"steps"`
	Output   string  `json:"output"`             // output that the program would have printed
	Writes   int     `json:"writes"`             // number of stores to memory of the target, which stay in the interpreter's copy
	PauseUS  *int64  `json:"pause_us,omitempty"` // how long the target was stopped; nil for a core

	// Floats is the floating-point environment of the run. It is nil if the environment is known to be the default one, or if no result depends on it.
	Floats *FloatEnvironment `json:"floating_point,omitempty"`

	Committed *Committed `json:"committed,omitempty"` // nil if no commit was requested

	With *With `json:"with,omitempty"` // result of a VM's own interpreter; nil if the reference interpreter ran
}

// FloatEnvironment is the floating-point environment of a thread.
type FloatEnvironment struct {
	Known  bool   `json:"known"`            // the thread's registers were read; if false, the default environment is assumed
	Text   string `json:"environment"`      // "default", or the differences from it
	Reason string `json:"reason,omitempty"` // why the environment is unknown
}

// ResumedFrame is one frame of a stack that ran.
type ResumedFrame struct {
	Frame     int     `json:"frame"`
	Function  string  `json:"function"` // native function
	Demangled string  `json:"demangled,omitempty"`
	Moment    Moment  `json:"moment"`
	Resume    Resume  `json:"resume,omitzero"`
	Given     *Result `json:"given,omitempty"` // the result of the frame's pending call that the user gave
}

// Result is a value that a function returned.
type Result struct {
	Type  string `json:"type"`
	Value string `json:"value"`
}

// With is the result of running VM frames in the VM's own interpreter.
type With struct {
	Command     string   `json:"command"`
	Interpreter string   `json:"interpreter,omitempty"` // the name that the interpreter reports
	Method      string   `json:"method,omitempty"`      // method of the outermost VM frame
	Position    *int64   `json:"position,omitempty"`
	Bits        Hex      `json:"bits,omitempty"`        // bits of the result in the form in which compiled code returns it
	Threw       *string  `json:"threw,omitempty"`       // the exception that the outermost frame threw
	Unsupported string   `json:"unsupported,omitempty"` // why the interpreter does not support these frames
	Malformed   string   `json:"malformed,omitempty"`   // why no interpreter can accept these frames
	Requests    int      `json:"requests"`              // number of requests that the interpreter made
	Allocated   uint64   `json:"allocated"`             // number of bytes that the interpreter allocated
	Tail        []string `json:"tail,omitempty"`        // the last instructions that the interpreter ran, oldest first, if they were requested
}
