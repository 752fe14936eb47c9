// Package truth writes random programs that log their own values, and compares every reported value with the log (doc/dev/truth.md). All of it is tests,
// of which the main type is program. What they compile and run is trusted with the rights of the test.
package truth
