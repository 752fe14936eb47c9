// Package tiers runs JIT programs that recompile, redefine and unload functions and reuse addresses and ids, and compares every reported name, type
// and value with the programs' own logs. All of it is tests, of which the main type is version. What they compile and run is trusted with the rights
// of the test.
package tiers
