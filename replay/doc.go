// Package replay runs saved exits as tests: scripts, each of which opens a core or launches a program and states the expected output, and whole
// folders of cores.
//
// Its main type is [Run], which processes many items: it works on as many as there are processors, reports their [Result]s in the order of their
// names, and keeps a journal with which a run that was killed is continued. [Scripts] runs one script, [Cores] looks at one core.
//
// # Security
//
// A script may start any program, as a shell script may: it is as trusted as the tests of a project. A core is hostile. A worker opens, processes
// and closes it; a broken core, or one that takes too long, gives a result that says so, and does not affect others. Names and messages may contain
// any text: they are escaped where they are written as JSON, XML or to a terminal.
package replay
