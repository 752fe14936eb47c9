package ptrace

import "github.com/go-delve/delve/pkg/proc/native/cpuid"

// zmmOffset is where the upper halves of zmm0 to zmm15 lie in an XSAVE area of this processor.
func zmmOffset() int { return cpuid.AMD64XstateZMMHi256Offset() }
