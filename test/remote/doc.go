// Package remote runs the verbs on processes that gdbserver, lldb-server, valgrind and QEMU hold.
package remote
