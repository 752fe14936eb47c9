// Package trace runs trace on running processes, and ends it in all ways.
package trace
