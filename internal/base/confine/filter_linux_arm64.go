package confine

import "golang.org/x/sys/unix"

// arch is AUDIT_ARCH_AARCH64 of linux/audit.h.
const arch = 0xc00000b7

// ownCalls are permitted in addition.
var ownCalls = []uint32{unix.SYS_FSTATAT}

// ownRules are, in addition, for calls whose arguments matter.
var ownRules []rule
