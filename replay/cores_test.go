package replay_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/deopt"
	"example.com/reframe/deopt/frame"
	"example.com/reframe/internal/llvm/ir"
	"example.com/reframe/internal/vm/layout"
	"example.com/reframe/ptrace"
	"example.com/reframe/replay"
	"example.com/reframe/test/livetest"
)

// kept writes a core of a process at its exit, and returns the path.
func kept(t *testing.T, p *livetest.Process, compress bool) string {
	t.Helper()
	target, err := ptrace.Capture(p.PID, ptrace.Options{Record: true, Hold: true})
	require.NoError(t, err)
	defer target.Close()
	path := filepath.Join(t.TempDir(), "exit.core")
	_, err = target.WriteCore(context.Background(), path, ptrace.RecordOptions{Memory: ptrace.Writable, Compress: compress})
	require.NoError(t, err)
	return path
}

// looker returns a Cores with the module and layout of deoptimize.ll.
func looker(t *testing.T) *replay.Cores {
	t.Helper()
	m, err := ir.ParseFile(livetest.IR(t, 19, "deoptimize.ll"))
	require.NoError(t, err)
	l, err := layout.Read(livetest.Testdata(t, "programs", "deoptimize.layout.json"))
	require.NoError(t, err)
	files := &ptrace.ModuleFiles{}
	t.Cleanup(files.Close)
	return &replay.Cores{Core: ptrace.CoreOptions{Files: files}, Inputs: deopt.Options{Modules: []*ir.Module{m}, Layouts: []*layout.Layout{l}},
		Limits: deopt.Limits{Steps: 1e6, Memory: 16 << 20}}
}

func core(path string) replay.Item { return replay.Item{Kind: replay.Core, Path: path, Named: true} }

func TestLook(t *testing.T) {
	c := looker(t)
	for name, p := range map[string]*livetest.Process{"jit": livetest.Lli(t, 19, "deoptimize.ll", "mcjit"), "compiled": livetest.Linked(t, 19, "deoptimize.ll", "-pie")} {
		for _, compress := range []bool{false, true} {
			t.Run(fmt.Sprint(name, compress), func(t *testing.T) {
				r := c.Look(context.Background(), core(kept(t, p, compress)))
				require.Equal(t, replay.OK, r.Outcome, r.Message)
				require.Len(t, r.Found.Exits, 1)
				x := r.Found.Exits[0]
				require.NotNil(t, x.Offset)
				x.Offset, x.Frame = nil, 0 // these depend on the release of the code generator
				require.Equal(t, replay.Exit{TID: p.PID, Function: "sum_opt", Record: 2882400000, Site: "deoptimize", Moment: frame.InCall,
					Resume: &frame.Resume{Function: "sum", Block: "loop"}, Slots: 3}, x)
				require.Equal(t, &frame.Result{Type: "i64", Value: "332833500"}, r.Found.Resumed.Result)
				require.Equal(t, "amd64", r.Found.Arch)
			})
		}
	}
}

// TestLookInPart requires that the result of a core which cannot be resumed has the reason.
func TestLookInPart(t *testing.T) {
	path := kept(t, livetest.Lli(t, 19, "deoptimize.ll", "mcjit"), false)
	c := looker(t)
	c.Limits.Steps = 10
	r := c.Look(context.Background(), core(path))
	require.Equal(t, replay.Partial, r.Outcome)
	require.Regexp(t, `^frame #\d+, sum_opt: .*not finished after 10 steps$`, r.Message)
	require.Nil(t, r.Found.Resumed)

	c = looker(t)
	c.Inputs.Layouts = nil
	r = c.Look(context.Background(), core(path))
	require.Equal(t, replay.Partial, r.Outcome)
	require.Equal(t, "no frame has a known place where it resumes", r.Message)

	r = c.Look(context.Background(), core(kept(t, livetest.C(t, "nojit.c", nil), false)))
	require.Equal(t, replay.Partial, r.Outcome)
	require.Equal(t, "no frame has a known place where it resumes", r.Message)
}

// TestLookWithoutMaps requires that a core without stack maps is OK if all its frames are complete, and that an unreadable core fails.
func TestLookWithoutMaps(t *testing.T) {
	c := &replay.Cores{}
	r := c.Look(context.Background(), core(kept(t, livetest.C(t, "nojit.c", nil), false)))
	require.Equal(t, replay.OK, r.Outcome, r.Message)
	require.Empty(t, r.Message)
	require.Greater(t, r.Found.Frames, 2)
	require.Regexp(t, `^no stack map: `, r.Found.Notes[len(r.Found.Notes)-1])
}

// TestLookAtBrokenCores requires that a truncated or changed core affects only its own result. It must not cause a panic or exceed its time limit.
func TestLookAtBrokenCores(t *testing.T) {
	whole, err := os.ReadFile(kept(t, livetest.Linked(t, 19, "deoptimize.ll", "-pie"), false))
	require.NoError(t, err)
	dir, random := t.TempDir(), rand.New(rand.NewPCG(7, 0))
	for n := range 400 {
		b := append([]byte(nil), whole...)
		switch {
		case n%4 == 0:
			b = b[:random.IntN(len(b))]
		case n%4 == 1: // headers and notes
			for range 1 + random.IntN(8) {
				b[18+random.IntN(8000)] = byte(random.Uint32())
			}
		default:
			for range 1 + random.IntN(200) {
				b[18+random.IntN(len(b)-18)] ^= 1 << random.IntN(8)
			}
		}
		require.NoError(t, os.WriteFile(filepath.Join(dir, fmt.Sprintf("%03d", n)), b, 0o644))
	}
	r := &replay.Run{Items: replay.Find(replay.Core, []string{dir}), Job: looker(t).Look, Timeout: livetest.Patience}
	all, sum, err := collected(t, context.Background(), r)
	require.NoError(t, err)
	require.Equal(t, 400, sum.Items-sum.NotRun)
	for _, r := range all {
		require.NotContains(t, r.Message, "at fault", "%s\n%s", r.Path, r.Log)
		require.NotContains(t, r.Message, "stopped after", r.Path)
		require.True(t, r.Outcome == replay.OK || r.Message != "", r.Path)
	}
	require.Positive(t, sum.Failed)
	require.Positive(t, sum.OK+sum.Partial)
}

func TestIsCore(t *testing.T) {
	dir := t.TempDir()
	elf := func(class, data, kind byte) string {
		b := append([]byte("\x7fELF"), class, data, 1)
		b = append(b, make([]byte, 9)...)
		if data == 2 {
			return string(append(b, 0, kind))
		}
		return string(append(b, kind, 0))
	}
	for n, c := range []struct {
		content string
		want    bool
	}{
		{elf(2, 1, 4), true}, {elf(2, 2, 4), true}, {elf(1, 1, 4), true}, {elf(2, 1, 3), false}, {elf(2, 2, 2), false},
		{elf(2, 1, 4) + strings.Repeat("x", 100), true}, {elf(2, 1, 4)[:17], false}, {"", false}, {"#!/bin/sh\nexit\n", false}, {"\x28\xb5\x2f\xfd", false},
	} {
		path := filepath.Join(dir, fmt.Sprint(n))
		require.NoError(t, os.WriteFile(path, []byte(c.content), 0o644))
		is, err := replay.IsCore(path)
		require.NoError(t, err)
		require.Equal(t, c.want, is, "%q", c.content)
		for _, level := range []string{"-1", "--ultra", "--long"} {
			compressed := path + level + ".zst"
			require.NoError(t, exec.Command(livetest.Tool(t, "zstd"), "-q", level, path, "-o", compressed).Run())
			is, err = replay.IsCore(compressed)
			require.NoError(t, err)
			require.Equal(t, c.want, is, "%q", c.content)
		}
	}
	_, err := replay.IsCore(filepath.Join(dir, "none"))
	require.ErrorIs(t, err, os.ErrNotExist)
}
