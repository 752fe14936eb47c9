package deopt_test

import (
	"testing"

	"example.com/reframe/test/livetest"
)

// prelude begins every program of these tests.
const prelude = livetest.Prelude

// start is a main that calls @work(100).
const start = livetest.Start

// again is a main that calls @work(100) for each SIGUSR1.
const again = `
define void @handler(i32 %n) {
  ret void
}
define i32 @main() {
entry:
  %h = call ptr @signal(i32 10, ptr @handler)
  %x = call i32 @puts(ptr @msg)
  br label %again
again:
  %p = call i32 @pause()
  %s = load volatile i64, ptr @seed
  %r = call i64 @work(i64 %s)
  br label %again
}
`

// program writes the text of a module to a file.
func program(t *testing.T, text string) string { return livetest.Module(t, text) }
