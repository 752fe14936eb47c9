// Package patches writes random programs whose compiled code is patched while it runs, and compares every frame and value that is shown of them
// with the log that the programs keep (doc/patches.md). All of it is tests, of which the main type is program. What they compile and run is
// trusted with the rights of the test.
package patches
