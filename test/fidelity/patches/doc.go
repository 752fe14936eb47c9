// Package patches writes random programs whose compiled code is patched while it runs, and compares every reported frame and value with the logs of
// the programs (doc/dev/patches.md). All of it is tests, of which the main type is program. What they compile and run is trusted with the rights of the
// test.
package patches
