package confine

import "golang.org/x/sys/unix"

// arch is AUDIT_ARCH_X86_64 of linux/audit.h. The x32 ABI has the same value but other call numbers.
const arch = 0xc000003e

// ownCalls holds the calls that are permitted only on this architecture.
var ownCalls = []uint32{unix.SYS_ARCH_PRCTL, unix.SYS_ACCESS, unix.SYS_READLINK, unix.SYS_STAT, unix.SYS_LSTAT, unix.SYS_NEWFSTATAT, unix.SYS_POLL, unix.SYS_DUP2, unix.SYS_GETRLIMIT}

// ownRules holds the rules for calls of this architecture whose arguments matter.
var ownRules = []rule{{call: unix.SYS_OPEN, argument: 1, test: unix.BPF_JSET, value: writing, not: true}}
