package page

// Difference is a difference that a verification found.
type Difference struct{}
