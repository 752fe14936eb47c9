// Package replay runs moments that were kept as tests: scripts, each of which opens a core or launches a
// program and says what is to be seen there, and whole folders of cores.
//
// Its main type is [Run], many of them at once: it works on as many as there are processors, hands their
// [Result]s on in the order of their names, and keeps a journal by which a run that was killed goes on.
// [Scripts] runs one script, [Cores] looks at one core.
//
// # Security
//
// A script may start any program, as a shell script may: it is as trusted as the tests of a project
// are. A core is hostile. It is opened by a worker, done and closed; a broken one, or one that takes
// too long, becomes a result that says so, and takes nothing from the others. Names and messages may hold
// any text: they are escaped where they are written as JSON, XML or to a terminal.
package replay
