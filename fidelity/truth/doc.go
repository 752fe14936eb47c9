// Package truth writes random programs that log their own values, and holds every value that is shown of them against the log
// (doc/truth.md). All of it is tests.
package truth
