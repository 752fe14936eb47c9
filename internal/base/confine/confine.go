// Package confine runs a program that reads hostile input. The program can read its standard input and the files that it needs to start, and write its
// standard output. It cannot change anything else on the machine.
//
// Its main function is [Command].
//
// # Security
//
// The program is trusted until it reads its input, which may take control of it. On Linux, on x86-64 and arm64, it runs with limited memory and
// without capabilities. If this process is root's, it runs as an unprivileged user. It cannot gain privileges (prctl(2), PR_SET_NO_NEW_PRIVS). A
// system call filter (seccomp(2)) fails with EPERM all calls that are not listed: those that write to files, create processes or connections, or act
// on other processes. The program may read the files that its user may read, but can send them only to its output. On other systems it runs without
// confinement.
package confine

// unprivileged is the conventional number of a user and a group that own no files.
const unprivileged = 65534
