// Package confine runs a program that reads hostile input as a filter: it reads its standard input and the files that it needs to start, writes its
// standard output, and can do nothing else to the machine.
//
// Its main function is [Command].
//
// # Security
//
// The program is trusted when it starts, and no longer once it has read its input. On Linux, on x86-64 and arm64, it runs with a bound on its memory,
// without capabilities, as the user nobody where this process is root's, without new privileges (prctl(2), PR_SET_NO_NEW_PRIVS), and with a filter of system
// calls (seccomp(2)) that denies with EPERM what is not listed: all that writes to files, makes processes or connections, or acts on other processes.
// It may read the files that its user may read, and can send them nowhere but to its output. Elsewhere it runs as any other program.
package confine
