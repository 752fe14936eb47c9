package ptrace

import (
	"bytes"
	"context"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/reframe/deopt/frame"
	"example.com/reframe/internal/machine"
	"example.com/reframe/ptrace/elfcore"
	"example.com/reframe/test/livetest"
)

// patchedKinds lists the kinds of code in testdata/patched.c.
var patchedKinds = []string{"text", "mem", "rwx", "relocated", "anonymous", "anonymousrwx", "memfd", "memfdcopy", "shared", "sharedcopy", "file"}

var patchedFlags = []string{"-pie", "-fPIE", "-Wl,-z,notext"}

// patched starts testdata/patched.c, and returns the address and the bytes of the patched code, which the program prints.
func patched(t *testing.T, args ...string) (p *livetest.Process, at machine.Addr, code []byte) {
	t.Helper()
	flags := patchedFlags
	if strings.HasPrefix(args[0], "large") {
		flags = append(slices.Clone(flags), "-DLARGE")
	}
	p = program(t, "patched.c", flags, args...)
	for line := range strings.Lines(p.Output()) {
		var text string
		if n, _ := fmt.Sscanf(line, "code 0x%x %s", &at, &text); n == 2 {
			b, err := hex.DecodeString(text)
			require.NoError(t, err)
			return p, at, b
		}
	}
	require.Fail(t, "it did not say where its code is", "%s", p.Output())
	return
}

// TestPatchedCode requires that every kind of target contains the patched code, and that all other code equals memory.
func TestPatchedCode(t *testing.T) {
	livetest.Slow(t)
	withoutRseq(t)
	for _, kind := range patchedKinds {
		t.Run(kind, func(t *testing.T) {
			p, at, want := patched(t, kind)
			p.AwaitPause(t)
			before := snapshot(t, p.PID)
			requireCode := func(how string, target *Target) {
				t.Helper()
				for i := range want { // also the ranges that an instruction decoder reads
					for _, n := range []int{1, 7, 16, len(want)} {
						got := make([]byte, min(n, len(want)-i))
						require.NoError(t, target.ReadMemory(got, at+machine.Addr(i)), how)
						require.Equal(t, want[i:][:len(got)], got, how)
					}
				}
				known := 0
				for page, b := range before {
					if m, ok := target.Mapping(page); !ok || !m.Exec {
						continue
					}
					got := make([]byte, len(b))
					if target.ReadMemory(got, page) == nil {
						known++
						require.True(t, bytes.Equal(b, got), "%s: the page at %v is not what stood there", how, page)
					}
				}
				require.Greater(t, known, 100, how) // includes libc's mappings
			}
			var recorded []string
			for how, o := range map[string]Options{"let go": {}, "held": {Hold: true}, "to record": {Record: true}, "held, to record": {Record: true, Hold: true}} {
				target, err := Capture(p.PID, o)
				require.NoError(t, err)
				requireCode(how, target)
				if o.Hold {
					target.Release()
					requireCode(how+" and let go", target)
				}
				target.Close()
				if o.Record {
					recorded = append(recorded, recordedCore(t, p, o, Minimal))
				}
			}
			for _, path := range recorded {
				core := openCore(t, path)
				requireCode("recorded", core)
				requireTrue(t, before, core)
				thin := openCore(t, thinCore(t, path))
				requireCode("recorded, of a recorded one", thin)
				requireTrue(t, before, thin)
			}
			cores := ways(t, p)
			for _, how := range livetest.ShareOf(inOrder(cores), kind) {
				path := cores[how]()
				core := openCore(t, path)
				requireCode(how, core)
				thin := openCore(t, thinCore(t, path))
				requireCode(how+", of that one", thin)
				requireTrue(t, before, thin)
			}
		})
	}
}

// TestPatchedCodeThatChanges requires that the captured code of a process which continuously overwrites it is of one moment. The process records each
// write before it performs it.
func TestPatchedCodeThatChanges(t *testing.T) {
	livetest.Slow(t)
	for _, kind := range patchedKinds {
		if kind == "relocated" {
			continue // it is no longer written
		}
		t.Run(kind, func(t *testing.T) {
			p, at, _ := patched(t, kind, "churn")
			require.Eventually(t, func() bool { return strings.Contains(p.Output(), "turning") }, livetest.Patience, time.Millisecond)
			var turns machine.Addr
			_, err := fmt.Sscanf(p.Output()[strings.Index(p.Output(), "turns"):], "turns 0x%x", &turns)
			require.NoError(t, err)
			seen, whole := map[byte]bool{}, 0
			look := func(how string, target *Target) {
				t.Helper()
				var turn [2]byte
				require.NoError(t, target.ReadMemory(turn[:], turns))
				code := make([]byte, elfcore.Page)
				if err := target.ReadMemory(code, at); err != nil {
					// If the writer ran neither shortly before the stop nor during it, the code was not copied.
					later := kind == "file" && strings.HasSuffix(err.Error(), "of/copy has changed since")
					m, ok := target.Mapping(at)
					require.True(t, later || kind == "text" && ok && !m.Exec, "%s: %v", how, err)
					return
				}
				whole++
				seen[code[0]] = true
				written := 0
				for written < len(code) && code[written] == turn[0] {
					written++
				}
				require.Zero(t, written%8, how)
				require.True(t, bytes.Equal(bytes.Repeat([]byte{turn[0] - 1}, len(code)-written), code[written:]), "%s: of several moments", how)
				require.True(t, turn[0] != turn[1] || written == len(code), how)
			}
			for range livetest.Times(12, 50) {
				for how, o := range map[string]Options{"let go": {}, "held": {Hold: true}, "recorded": {Record: true}} {
					target, err := Capture(p.PID, o)
					require.NoError(t, err)
					look(how, target)
					if o.Hold {
						target.Release()
						look("held, and let go", target)
					}
					if o.Record {
						path := filepath.Join(t.TempDir(), "core")
						_, err := target.WriteCore(context.Background(), path, RecordOptions{Memory: Minimal})
						require.NoError(t, err)
						// A change that was not detected is read from the file, and a core does not contain the time of a write to a file.
						if b, _ := target.memory.(moment).from(at, elfcore.Page); kind != "file" || len(b) == elfcore.Page {
							look("core", openCore(t, path))
						}
					}
					target.Close()
				}
			}
			require.NotZero(t, whole)
			t.Logf("%d whole, of %d moments", whole, len(seen))
		})
	}
}

// TestMuchPatchedCode requires, for a process with more patched code than a stop copies, that code at return addresses is available, and that other
// patched code is reported as unavailable.
func TestMuchPatchedCode(t *testing.T) {
	for kind, why := range map[string]string{"large": " was written to", "largerwx": " is writable there"} {
		p, at, want := patched(t, kind)
		p.AwaitPause(t)
		got, far := make([]byte, len(want)), at+maxOwnCode
		path := executable(t, "patched.c", append(slices.Clone(patchedFlags), "-DLARGE")...)
		target, err := Capture(p.PID, Options{Record: true})
		require.NoError(t, err)
		require.NoError(t, target.ReadMemory(got, at))
		require.Equal(t, want, got)
		of := path
		if kind == "large" {
			of = "its page of " + path
		}
		require.EqualError(t, target.ReadMemory(got, far), fmt.Sprintf("64 bytes at %v: %s, and %s%s", far, NotCopied, of, why))
		file := filepath.Join(t.TempDir(), "core")
		_, err = target.WriteCore(context.Background(), file, RecordOptions{Memory: Minimal})
		require.NoError(t, err)
		target.Close()
		for how, path := range map[string]string{"recorded": file, "of a large core": thinCore(t, ownCore(t, p))} {
			core := openCore(t, path)
			require.NoError(t, core.ReadMemory(got, at), how)
			require.Equal(t, want, got, how)
			if err := core.ReadMemory(got, far); err != nil || how == "recorded" {
				require.ErrorContains(t, err, "not in the core: the process changed this memory of ", how)
				continue
			}
			require.Equal(t, bytes.Repeat([]byte{0xcc}, len(got)), got) // a core can be compared with the file
		}
		target, err = Capture(p.PID, Options{Hold: true})
		require.NoError(t, err)
		require.NoError(t, target.ReadMemory(got, far))
		require.Equal(t, bytes.Repeat([]byte{0xcc}, len(got)), got)
		target.Release()
		require.NoError(t, target.ReadMemory(got, at))
		require.Equal(t, want, got)
		require.Error(t, target.ReadMemory(got, far))
		target.Close()
	}
}

// TestFileWrittenLater requires that a file which is written after a capture is no longer used for memory.
func TestFileWrittenLater(t *testing.T) {
	p, at, want := patched(t, "file")
	p.AwaitPause(t)
	path := fmt.Sprintf("/proc/%d/cwd/of/copy", p.PID)
	long := time.Now().Add(-time.Hour)
	require.NoError(t, os.Chtimes(path, long, long))
	target, err := Capture(p.PID, Options{})
	require.NoError(t, err)
	t.Cleanup(target.Close)
	got := make([]byte, len(want))
	require.NoError(t, target.ReadMemory(got, at))
	require.Equal(t, want, got)
	m, ok := target.Mapping(at)
	require.True(t, ok)
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	require.NoError(t, err)
	defer f.Close()
	_, err = f.WriteAt(make([]byte, elfcore.Page), int64(m.Offset))
	require.NoError(t, err)
	require.NoError(t, target.ReadMemory(got, at)) // this memory was read before the write
	require.Equal(t, want, got)
	err = target.ReadMemory(got, at+elfcore.Page/2)
	require.ErrorContains(t, err, NotCopied)
	require.Equal(t, frame.MemoryNotCopied, frame.CodeOf(err))
	require.ErrorContains(t, err, "of/copy has changed since")
}
