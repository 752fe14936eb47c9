package frame

// Direct is a variable in the memory of a frame (an alloca) that records of the frame's function locate by its address. LLVM keeps the variable at
// one offset in the frame for the whole body of the function, so its address is known at every pc in the body ("Direct Stack Map Entries").
type Direct struct {
	Name     string   `json:"name,omitempty"`     // as the module spells it; empty if no module names it
	Variable string   `json:"variable,omitempty"` // variable of the source program, as in [Slot]
	Address  Hex      `json:"address,omitempty"`  // empty if unknown
	Place    string   `json:"place,omitempty"`    // the address as an offset in the frame, such as CFA-24
	Location Location `json:"location"`           // the location in the first record that has it
	Record   uint64   `json:"record"`             // the id of that record
	Records  int      `json:"records"`            // number of records of the function that have this location

	Type   Type   `json:"type,omitzero"`   // type of the content
	Value  string `json:"value,omitempty"` // the content in the type's natural form
	Hex    Hex    `json:"hex,omitempty"`   // the raw bits of the content
	Status Status `json:"status"`          // whether the content was read
	Code   Code   `json:"code,omitempty"`
	Reason string `json:"reason,omitempty"`
}
