package frame

// Committed lists the changes that a commit made in the process. For a dry run it lists the changes that the commit would make.
type Committed struct {
	Written bool `json:"written"` // false if nothing was written
	// Left lists the numbers of the frames that the thread no longer has, innermost first: those that ran in the interpreter, and all frames inside
	// them.
	Left []int `json:"left"`
	// Continues is the return address of the outermost frame that ran in the interpreter. The thread resumes there.
	Continues CommittedPlace      `json:"continues"`
	Result    []CommittedResult   `json:"result"` // scalars of the result, in order
	Bytes     int                 `json:"bytes"`  // total size of Memory
	Memory    []CommittedMemory   `json:"memory"` // in ascending order of address
	Registers []CommittedRegister `json:"registers"`
}

// CommittedPlace is a return address, and the number of the frame to which it returns.
type CommittedPlace struct {
	Frame     int     `json:"frame"`
	PC        Hex     `json:"pc"`
	Function  string  `json:"function,omitempty"`
	Demangled string  `json:"demangled,omitempty"`
	Offset    *uint64 `json:"offset,omitempty"`
}

// CommittedResult is one scalar of the result, and the register where the caller expects it.
type CommittedResult struct {
	Path     string `json:"path,omitempty"` // such as "[1]", for a part of an aggregate or a vector
	Type     string `json:"type"`
	Value    string `json:"value"`
	Register string `json:"register"` // such as "rax" or "rax:rdx"; "xmm0+4" is at an offset of 4 bytes
}

// CommittedMemory is one range of changed bytes.
type CommittedMemory struct {
	Address Hex    `json:"address"`
	Size    int    `json:"size"`
	Old     string `json:"old"` // the bytes before the commit, two hexadecimal digits each
	New     string `json:"new"`
}

// CommittedRegister is a register that was set. For a vector register, Old and New are the low 16 bytes.
type CommittedRegister struct {
	Name string `json:"name"`
	Old  Hex    `json:"old"`
	New  Hex    `json:"new"`
}
