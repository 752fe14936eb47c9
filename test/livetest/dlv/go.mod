// This module pins Delve for the tests that run dlv. The version is that of the library in the main module.
module example.com/reframe/test/livetest/dlv

go 1.26.0

require github.com/go-delve/delve v1.27.2
