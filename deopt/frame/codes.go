package frame

// Unreadable is the code of a failure that has no code of its own.
const Unreadable Code = "unreadable"

// Codes of registers.
const (
	NotCaptured     Code = "not-captured"
	ReadAmbiguous   Code = "register-ambiguous"
	CallerSaved     Code = "caller-saved"
	NotKept         Code = "not-kept"
	CallReturned    Code = "call-returned"
	CallRunning     Code = "call-running"
	LinkRegister    Code = "link-register"
	LinkLost        Code = "link-lost"
	NotSaved        Code = "not-saved"
	SignalFrame     Code = "signal-frame"
	LeftWithoutCFI  Code = "left-without-cfi"
	CFAUnknown      Code = "cfa-unknown"
	SearchBudget    Code = "search-budget"
	CFIUndefined    Code = "cfi-undefined"
	CFIExpression   Code = "cfi-expression"
	SaveUnreadable  Code = "save-unreadable"
	SaveSizeUnknown Code = "save-size-unknown"
	Convention      Code = "convention"
	TailCall        Code = "tail-call"
	PatchChanged    Code = "patch-changed"
	PatchVectors    Code = "patch-vectors"
	MayHaveChanged  Code = "may-have-changed"
	PartlyAvailable Code = "partly-available"
	PartBytes       Code = "part-bytes"
	VectorLength    Code = "vector-length"
	FloatsUnread    Code = "floats-unread"
	ResultElsewhere Code = "result-elsewhere"
)

// Codes that say why a stack was cut short.
const (
	ThreadUnread   Code = "thread-unread"
	NoPC           Code = "no-pc"
	FrameLimit     Code = "frame-limit"
	NoUnwindInfo   Code = "no-unwind-information"
	CFIUnusable    Code = "cfi-unusable"
	LinkUnsaved    Code = "link-unsaved"
	ReturnToNoCode Code = "return-to-no-code"
	ReturnToNoCall Code = "return-to-no-call"
	ReturnToZero   Code = "return-to-zero"
	StackContinues Code = "stack-continues"
	StackLoop      Code = "stack-loop"
	StackSwitch    Code = "stack-switch"
	PatchUndecided Code = "patch-undecided"
)

// Codes of memory.
const (
	MemoryUnreadable Code = "memory-unreadable"
	MemoryNotCopied  Code = "memory-not-copied"
	MemoryRedacted   Code = "memory-redacted"
	MemoryPending    Code = "memory-pending" // userfaultfd has not provided the page
	MemoryGone       Code = "memory-gone"    // the process has ended
)

// Codes of values in a record.
const (
	RecordedEmpty    Code = "recorded-empty"
	RecordedBit      Code = "recorded-bit"
	RecordedTooWide  Code = "recorded-too-wide"
	RecordedTooShort Code = "recorded-too-short"
	ConstantTooShort Code = "constant-too-short"
	NotRecorded      Code = "not-recorded"
	MayBeUndef       Code = "may-be-undef"
	OtherSiteUndef   Code = "other-site-undef"
	ModuleUndef      Code = "undef"
	AfterOmitted     Code = "after-omitted"
	Contradiction    Code = "contradiction"
	OtherRecord      Code = "other-record"
	PartRecorded     Code = "part-recorded"
	VectorLayout     Code = "vector-layout"
	NotReached       Code = "not-reached"
	GuessedFrame     Code = "guessed-frame"
	FoldedFunctions  Code = "folded-functions"
	NotInFrame       Code = "not-in-frame"
	DirectUnknown    Code = "direct-unknown"
	MayBeDead        Code = "may-be-dead"
	NotAllocated     Code = "not-allocated"
	DeadValue        Code = "dead"
	LayoutUnread     Code = "layout"
)

// texts holds the format of each code's text. The comments name the arguments.
var texts = map[Code]string{
	Unreadable: "%v",

	NotCaptured:     "%s: %v",                                                                                                                                            // register, why
	ReadAmbiguous:   "%s",                                                                                                                                                // why
	CallerSaved:     "%s is caller-saved and frame #%d does not preserve it",                                                                                             // register, frame
	NotKept:         "%s is not preserved by the called frame",                                                                                                           // register
	CallReturned:    "%s is caller-saved and the call of the %s has returned",                                                                                            // register, kind of site
	CallRunning:     "it will be in %s when the call returns, and the call is still running",                                                                             // register
	LinkRegister:    "the call has overwritten %s with its return address",                                                                                               // register
	LinkLost:        "the function has overwritten %s, which held its return address",                                                                                    // register
	NotSaved:        "the code of frame #%d changes %s, and its CFI does not give the place where it was saved",                                                          // frame, register
	SignalFrame:     "frame #%d is a signal frame in which no place of %s is known",                                                                                      // frame, register
	LeftWithoutCFI:  "frame #%d was unwound by %s, which does not give the place where %s was saved",                                                                     // frame, rule, register
	SearchBudget:    "the search for the call that led here ended at its limit of %s",                                                                                    // limit
	CFAUnknown:      "%v",                                                                                                                                                // why
	CFIUndefined:    "the CFI of frame #%d marks %s as not preserved",                                                                                                    // frame, register
	CFIExpression:   "the expression in the CFI of frame #%d for %s: %v",                                                                                                 // frame, register, error
	SaveUnreadable:  "the place where frame #%d saved %s cannot be read: %v",                                                                                             // frame, register, error
	SaveSizeUnknown: "frame #%d saved %s at %v, and the number of saved bytes is unknown",                                                                                // frame, register, address
	Convention:      "a function of %s, such as frame #%d, does not preserve %s",                                                                                         // convention, frame, register
	TailCall:        "frame #%d was entered by a tail call with arguments on the stack, and CFI does not give the number of arguments on the stack at the original call", // frame
	PatchChanged:    "%s was changed by the code that was written over the function's",                                                                                   // register
	PatchVectors:    "%s may have been changed by the code that was written over the function's, which uses vector registers",                                            // register
	MayHaveChanged:  "%s may have been changed %s",                                                                                                                       // register, where
	PartlyAvailable: "only a part of it is available",
	PartBytes:       "only %[2]d bytes of %[1]s are available",                                 // register, bytes
	VectorLength:    "vg, which determines the layout of the function's frame, is unknown: %s", // why
	FloatsUnread:    "%s",                                                                      // why
	ResultElsewhere: "%s",                                                                      // why

	RecordedEmpty:    "recorded with a size of 0 bytes",
	RecordedBit:      "bit %d of %s, which has %d bits",                                                  // bit, register, bits
	RecordedTooWide:  "recorded with %d bytes of %s, which has %d",                                       // size, register, bytes
	RecordedTooShort: "recorded with %d bytes, and a value of type %s has %d",                            // bytes, type, size
	ConstantTooShort: "a constant of 64 bits holds only a part of a value of %d bits",                    // bits
	NotRecorded:      "%s",                                                                               // why LLVM records no location
	MayBeUndef:       "%s",                                                                               // sites.UndefMark
	OtherSiteUndef:   "it is undefined if the site is that of line %d of the module, which also matches", // line
	ModuleUndef:      "the module has %s here",                                                           // operand
	AfterOmitted:     "%s",                                                                               // sites.AfterMoved
	Contradiction:    "%s",                                                                               // what contradicts
	OtherRecord:      "record %d at the same address has another value of it: %s in %s",                  // id, bits, location
	PartRecorded:     "%s",                                                                               // what LLVM records of it
	VectorLayout:     "%v",                                                                               // error
	NotReached:       "the run has not reached it, or has made it %s",                                    // value
	GuessedFrame:     "%v",                                                                               // why the frame is a guess
	NotInFrame:       "%s",                                                                               // why
	DirectUnknown:    "%s",                                                                               // why
	NotAllocated:     "it is object %d, which was not allocated",                                         // object
	DeadValue:        "it is dead",
	LayoutUnread:     "%s", // what the layout could not read

	ThreadUnread:   "%s",                                                                        // why
	NoPC:           "frame #0 has no pc: %v",                                                    // error
	FrameLimit:     "there are more than %d frames",                                             // limit
	NoUnwindInfo:   "frame #%d has no unwind information for %v%s",                              // frame, pc, what was tried
	CFIUnusable:    "frame #%d: %v",                                                             // frame, error
	LinkUnsaved:    "frame #%d: %v",                                                             // frame, error
	ReturnToNoCode: "frame #%d: its return address %v is not in executable memory",              // frame, address
	ReturnToNoCall: "frame #%d %s to %v, which follows no call%s",                               // frame, "returns" or how it was entered, address, more
	ReturnToZero:   "frame #%d: its return address is zero, and frame #%d was found by a guess", // frame, the other
	StackContinues: "frame #%d: %v, and the stack continues above it",                           // frame, error
	StackLoop:      "frame #%d: %s",                                                             // frame, what repeats
	StackSwitch:    "frame #%d: %v",                                                             // frame, error
	PatchUndecided: "frame #%d: %s",                                                             // frame, why

	FoldedFunctions: "the linker folded several functions into the code at %v%s; which of them runs is unknown", // address, ": " and their names
	MayBeDead:       "it has a lifetime in the module (llvm.lifetime), outside of which its memory may be another variable's",
}
