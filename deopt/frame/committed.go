package frame

// Committed lists the changes that a commit made in the process, or would have made in a dry run.
type Committed struct {
	Written bool `json:"written"` // false: nothing was written
	// Left lists the numbers of the frames that the thread left, innermost first: those that ran in the interpreter and all frames that they had
	// called.
	Left []int `json:"left"`
	// Continues is the place where the thread resumed: the return address of the outermost frame that ran.
	Continues CommittedPlace      `json:"continues"`
	Result    []CommittedResult   `json:"result"` // scalars of the result, in order
	Bytes     int                 `json:"bytes"`  // total size of Memory
	Memory    []CommittedMemory   `json:"memory"` // in ascending order
	Registers []CommittedRegister `json:"registers"`
}

// CommittedPlace is a return address in a numbered frame.
type CommittedPlace struct {
	Frame     int     `json:"frame"`
	PC        Hex     `json:"pc"`
	Function  string  `json:"function,omitempty"`
	Demangled string  `json:"demangled,omitempty"`
	Offset    *uint64 `json:"offset,omitempty"`
}

// CommittedResult is one scalar of the result, and the register where the caller expects it.
type CommittedResult struct {
	Path     string `json:"path,omitempty"` // "[1]" for a part of an aggregate or a vector
	Type     string `json:"type"`
	Value    string `json:"value"`
	Register string `json:"register"` // "rax", "rax:rdx", "xmm0+4" with the offset in bytes
}

// CommittedMemory is one range of changed bytes.
type CommittedMemory struct {
	Address Hex    `json:"address"`
	Size    int    `json:"size"`
	Old     string `json:"old"` // two hexadecimal digits per byte
	New     string `json:"new"`
}

// CommittedRegister is a register that was set. For a vector register, Old and New are the low 16 bytes.
type CommittedRegister struct {
	Name string `json:"name"`
	Old  Hex    `json:"old"`
	New  Hex    `json:"new"`
}
