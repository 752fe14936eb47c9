package tracer

import "runtime"

// Supported reports whether processes can be controlled on this platform: on Linux, on an architecture whose tables are here.
const Supported = runtime.GOOS == "linux" && hasTables
