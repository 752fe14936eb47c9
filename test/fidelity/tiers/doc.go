// Package tiers runs JIT programs that recompile, redefine and unload functions and reuse addresses and ids, and compares every reported name, type
// and value with the programs' own logs. The package contains only tests; their main type is version. The programs are compiled and run with the
// rights of the test.
package tiers
