package interp

// vaArea is where the variadic arguments of one frame lie.
type vaArea struct{}
