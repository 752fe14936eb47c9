// Package stress deoptimizes a program many times, from outside: at exits chosen at random it rebuilds the frame, the interpreter runs it to the
// return of its function, and the result is committed to the process, whose native code continues in the caller. The program must print the same, and
// end in the same way, as without this.
//
// Its main function is [Run], which makes a [Report]; where something differs it runs the program again and again, to find the one exit whose commit
// makes the difference.
//
// # Security
//
// The program runs with the rights of the user and is trusted no further: its running time, the number of its runs, and the part of its output that
// is kept have bounds. It is killed where it takes too long.
package stress
