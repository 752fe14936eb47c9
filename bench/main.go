// Command bench measures the time and memory that reframe costs a process and its user, beside gdb, eu-stack and llvm-readobj in the same run. Run it
// with `make bench`; it takes about seven minutes, and `go run ./bench records` measures one section of it.
//
// Its main type is [bench]: the built binary, the peers, and where rows are printed. A figure is the median of several runs, followed by the smallest
// and the largest value. The runs of different tools are interleaved, so that other load of the machine affects all of them alike. Every run must
// have done its work (named the function, listed all threads), otherwise the whole measurement fails, because the time of a tool that gave up is
// meaningless. A missed target is only reported, and is not a failure, because any target can be missed on a busy machine.
//
// # Security
//
// It starts this repository's own programs and the peers found on the PATH, all trusted. The measured processes are killed when it ends.
package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/reframe/test/livetest"
)

// bench is one run of all measurements.
type bench struct {
	*host
	ctx     context.Context
	reframe string // path of the binary under measurement
	gdb     string
	euStack string
	notes   []string // about the rows of the section

	traceCPU time.Duration // processor time of the reframe trace that ended last
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	if unknown := slices.IndexFunc(os.Args[1:], func(name string) bool { return sections[name] == nil }); unknown >= 0 {
		fmt.Fprintf(os.Stderr, "bench: no section is called %s; there are %s\n", os.Args[1+unknown], strings.Join(order, ", "))
		os.Exit(64)
	}
	h := &host{name: "bench"}
	failed := h.run(func() {
		// Livetest skips functions that require tools, unless this variable is set, as in the Makefile.
		require.NoError(h, os.Setenv("REFRAME_TOOLS", "1"))
		b := newBench(ctx, h)
		b.describeMachine()
		for _, name := range order {
			if len(os.Args) == 1 || slices.Contains(os.Args[1:], name) {
				sections[name](b)
			}
		}
	})
	if failed {
		os.Exit(1)
	}
}

// sections maps the names of the measurements to their functions; order is the order in which they run.
var (
	order    = []string{"pauses", "waits", "backtrace", "providers", "unwinding", "objects", "resumption", "traces", "vmtraces", "records", "replays", "interpreters", "modules", "stackmaps", "verifications", "with", "prompts"}
	sections = map[string]func(*bench){
		"pauses": (*bench).pauses, "waits": (*bench).waits, "backtrace": (*bench).firstBacktrace, "unwinding": (*bench).unwinding, "providers": (*bench).providers,
		"objects": (*bench).objects, "resumption": (*bench).resumption, "traces": (*bench).traces, "vmtraces": (*bench).vmTraces, "records": (*bench).records,
		"replays": (*bench).replays, "interpreters": (*bench).interpreters, "modules": (*bench).largeModules, "stackmaps": (*bench).stackMaps,
		"verifications": (*bench).verifications, "with": (*bench).interpretersOfVMs, "prompts": (*bench).prompts,
	}
)

// newBench builds reframe as `make build` does and finds the other tools.
func newBench(ctx context.Context, h *host) *bench {
	b := &bench{host: h, ctx: ctx, reframe: filepath.Join(h.TempDir(), "reframe")}
	build := exec.CommandContext(ctx, livetest.Tool(h, "go"), "build", "-trimpath", "-o", b.reframe, "example.com/reframe/cmd/reframe")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	text, err := build.CombinedOutput()
	require.NoError(h, err, "%s", text)
	b.gdb, b.euStack = livetest.Tool(h, "gdb"), livetest.Tool(h, "eu-stack")
	// Neither gdb nor eu-stack must spend time asking a server for debug information.
	require.NoError(h, os.Setenv("DEBUGINFOD_URLS", ""))
	return b
}

// section starts a group of rows.
func (b *bench) section(format string, args ...any) {
	fmt.Printf("\n"+format+"\n", args...)
}
