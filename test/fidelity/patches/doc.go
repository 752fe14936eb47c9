// Package patches writes random programs whose compiled code is patched while it runs, and compares every reported frame and value with the logs of
// the programs (doc/dev/patches.md). The package contains only tests; their main type is program. The programs are compiled and run with the rights
// of the test.
package patches
