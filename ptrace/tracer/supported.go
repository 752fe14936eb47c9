package tracer

import "runtime"

// Supported reports whether the tracer can control processes on this platform: on Linux, for an architecture with tables in this package.
const Supported = runtime.GOOS == "linux" && hasTables
