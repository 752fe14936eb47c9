// Package stress deoptimizes a running program many times: at randomly chosen exits it rebuilds the frame, and the interpreter runs it to the return
// of its function. The result is committed to the process, whose native code continues in the caller. The program must print the same output and end
// in the same way as without deoptimizations.
//
// Its main function is [Run], which makes a [Report]. If something differs, Run repeats the program to find the one exit whose commit causes the
// difference.
//
// # Security
//
// The program runs with the rights of the user. Its running time, the number of its runs, and the kept part of its output are bounded. A run that
// takes too long is killed.
package stress
