// Package stress deoptimizes a program a lot, from outside: at exits that are chosen at random the frame is rebuilt, the interpreter carries it on to the
// return of its function, and that is committed into the process, whose native code goes on in the caller. What the program prints, and how it
// ends, has to be what it is without.
//
// Its main function is [Run], which makes a [Report]; where something differs it runs the program again and again, to find the one exit whose
// commit makes the difference.
//
// # Security
//
// The program is trusted as far as whoever runs it does, and in nothing that it says: how long it runs, how often, and how much of its output is kept
// have bounds. It is killed where it takes too long.
package stress
