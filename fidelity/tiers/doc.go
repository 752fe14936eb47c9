// Package tiers runs JIT programs that compile one function again and again, redefine and unload it and use addresses and ids again, and compares every
// name, type and value that is shown of their stacks with the programs' own logs. All of it is tests, of which the main type is version. What they
// compile and run is trusted with the rights of the test.
package tiers
