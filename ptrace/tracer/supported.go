package tracer

import "runtime"

// Supported says that processes can be controlled where this build runs: on Linux, on an architecture whose tables are here.
const Supported = runtime.GOOS == "linux" && hasTables
