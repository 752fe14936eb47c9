package deopt_test

import (
	"bytes"
	"context"
	"debug/elf"
	"encoding/binary"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/deopt"
	"example.com/reframe/deopt/frame"
	"example.com/reframe/internal/llvm/ir"
	"example.com/reframe/ptrace"
	"example.com/reframe/test/livetest"
)

// inEnvironment returns a number from which the test sees whether a product of small numbers is flushed to zero.
const inEnvironment = `target datalayout = "e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-f80:128-n8:16:32:64-S128"
target triple = "x86_64-pc-linux-gnu"
declare i64 @wait_here(i64)
declare token @llvm.experimental.gc.statepoint.p0(i64, i32, ptr, i32, i32, ...)
define double @entry(double %a, double %b, double %c, double %d) gc "statepoint-example" {
  %t = call token (i64, i32, ptr, i32, i32, ...) @llvm.experimental.gc.statepoint.p0(i64 1, i32 0, ptr elementtype(i64 (i64)) @wait_here, i32 1, i32 0, i64 1, i32 0, i32 0) [ "deopt"(double %a, double %b, double %c, double %d) ]
  %p = fmul double %a, %b
  %m = fmul double %p, 1.0e+300
  %q = fdiv double %c, %d
  %r = fadd double %m, %q
  ret double %r
}
`

// TestResumeInTheThreadsFloatEnvironment requires that the interpreter continues in the floating-point environment of the thread, or of the code
// that a signal interrupted; also with a minimal core. If the target does not have the registers, it must report that it assumes the default
// environment.
func TestResumeInTheThreadsFloatEnvironment(t *testing.T) {
	path := livetest.Module(t, inEnvironment)
	m, err := ir.ParseFile(path)
	require.NoError(t, err)
	o := deopt.Options{Modules: []*ir.Module{m}}
	object := livetest.PICObject(t, 19, path)
	resumed := func(target *ptrace.Target) *frame.Resumed {
		v, err := deopt.Frames(target, o)
		require.NoError(t, err)
		s, err := v.Pick(deopt.Choice{Frame: -1})
		require.NoError(t, err)
		require.Equal(t, "entry", s.Frames[0].Function)
		r, err := v.Run(context.Background(), s, deopt.Limits{})
		require.NoError(t, err)
		return r
	}
	// Results for 1/3, to which the product of the small numbers is added unless it is zero.
	const flushed, kept = "0.3333333333333333", "0.3333333333333343"
	known := &frame.FloatEnvironment{Known: true, Text: "subnormal operands and results are zero"}
	for _, args := range [][]string{nil, {"interrupted"}} {
		p := livetest.C(t, "environment.c", []string{object}, args...)
		p.AwaitPause(t)
		target, err := ptrace.Capture(p.PID, ptrace.Options{Record: true})
		require.NoError(t, err)
		r := resumed(target)
		require.Equal(t, flushed, r.Result.Value, "%v", args)
		require.Equal(t, known, r.Floats, "%v", args)
		file := filepath.Join(t.TempDir(), "core")
		_, err = target.WriteCore(context.Background(), file, ptrace.RecordOptions{Memory: ptrace.Minimal})
		require.NoError(t, err)
		target.Close()
		for _, c := range []struct {
			hidden []elf.NType
			value  string
			floats *frame.FloatEnvironment
		}{
			{nil, flushed, known},
			{[]elf.NType{elf.NT_FPREGSET}, flushed, known}, // the note of XSAVE also has the registers
			{[]elf.NType{elf.NT_FPREGSET, 0x202}, kept, &frame.FloatEnvironment{Text: "default", Reason: "the core contains no floating-point registers of the thread"}},
		} {
			if args != nil && c.floats != known {
				c.value, c.floats = flushed, known // the signal frame has the registers
			}
			core, err := ptrace.OpenCore(withoutNotes(t, file, c.hidden), ptrace.CoreOptions{})
			require.NoError(t, err)
			r = resumed(core)
			require.Equal(t, c.value, r.Result.Value, "%v %v", args, c.hidden)
			require.Equal(t, c.floats, r.Floats, "%v %v", args, c.hidden)
			core.Close()
		}
	}
}

// withoutNotes copies a core and changes notes of the given types to an unknown type.
func withoutNotes(t *testing.T, path string, types []elf.NType) string {
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	f, err := elf.NewFile(bytes.NewReader(data))
	require.NoError(t, err)
	for _, p := range f.Progs {
		if p.Type != elf.PT_NOTE {
			continue
		}
		for at := p.Off; at < p.Off+p.Filesz; {
			name, desc := binary.LittleEndian.Uint32(data[at:]), binary.LittleEndian.Uint32(data[at+4:])
			for _, kind := range types {
				if elf.NType(binary.LittleEndian.Uint32(data[at+8:])) == kind {
					binary.LittleEndian.PutUint32(data[at+8:], 0x7ead)
				}
			}
			at += 12 + uint64(name+3)&^3 + uint64(desc+3)&^3
		}
	}
	out := filepath.Join(t.TempDir(), "core")
	require.NoError(t, os.WriteFile(out, data, 0o600))
	return out
}
