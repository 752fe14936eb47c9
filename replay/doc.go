// Package replay runs saved exits as tests: scripts, each of which opens a core or launches a program and states the expected output, and whole
// folders of cores.
//
// Its main type is [Run], which processes many items: one on each processor at a time. It reports their [Result]s in the order of their names, and
// keeps a journal, so that a killed run can be continued. [Scripts] runs one script, [Cores] looks at one core.
//
// # Security
//
// A script may start any program, as a shell script may: it is as trusted as the tests of a project. A core is hostile. A worker opens, processes and
// closes it; a broken core, or one that takes too long, gets a result with the reason and does not affect others. Names and messages may contain any
// text: they are escaped when they are written as JSON, XML or to a terminal.
package replay
