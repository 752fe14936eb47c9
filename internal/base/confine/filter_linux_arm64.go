package confine

import "golang.org/x/sys/unix"

// arch is AUDIT_ARCH_AARCH64 of linux/audit.h.
const arch = 0xc00000b7

// ownCalls holds the calls that are permitted only on this architecture.
var ownCalls = []uint32{unix.SYS_FSTATAT}

// ownRules holds the rules for calls of this architecture whose arguments matter.
var ownRules []rule
