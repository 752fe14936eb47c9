// Package truth writes random programs that log their own values, and compares every reported value with the log (doc/dev/truth.md). The package
// contains only tests; their main type is program. The programs are compiled and run with the rights of the test.
package truth
