package frame

// Direct is a variable in the memory of a frame (an alloca) that records of the frame's function locate by its address. LLVM fixes such an address
// for the whole body of the function, so it is known at every pc there ("Direct Stack Map Entries").
type Direct struct {
	Name     string   `json:"name,omitempty"`     // as the module spells it; empty where no module names it
	Variable string   `json:"variable,omitempty"` // of the source program, as in [Slot]
	Address  Hex      `json:"address,omitempty"`  // empty if unknown
	Place    string   `json:"place,omitempty"`    // how the address follows from the frame, such as CFA-24
	Location Location `json:"location"`           // as the first record has it
	Record   uint64   `json:"record"`             // the id of that record
	Records  int      `json:"records"`            // number of records of the function that have it

	Type   Type   `json:"type,omitzero"`   // of the content
	Value  string `json:"value,omitempty"` // the content in the type's natural form
	Hex    Hex    `json:"hex,omitempty"`   // its raw bits
	Status Status `json:"status"`          // of the content
	Reason string `json:"reason,omitempty"`
}
