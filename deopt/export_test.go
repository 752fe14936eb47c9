package deopt

// What tests of this package that import packages above it use of those that are inside.

// ShadowsOf is shadowsOf.
var ShadowsOf = shadowsOf

// HasReturned is hasReturned.
var HasReturned = hasReturned
