package deopt_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/deopt"
	"example.com/reframe/deopt/frame"
	"example.com/reframe/deopt/stackmap"
	"example.com/reframe/internal/llvm/ir"
	"example.com/reframe/internal/llvm/sites"
	"example.com/reframe/internal/machine"
	"example.com/reframe/test/frametest"
)

// Code at 0x1000, encoded by the instruction set manual.
var (
	// movabs $0x1122334455667788,%r11; call *%r11; three bytes of nop
	patchpoint = []byte{0x49, 0xbb, 0x88, 0x77, 0x66, 0x55, 0x44, 0x33, 0x22, 0x11, 0x41, 0xff, 0xd3, 0x0f, 0x1f, 0x00}
	// nop; call rel32; nop of eight bytes; nop of two: a region that a runtime patched
	patched = []byte{0x90, 0xe8, 0, 0, 0, 0, 0x0f, 0x1f, 0x84, 0, 0, 0, 0, 0, 0x66, 0x90}
	// endbr64; call rel32
	endbr  = []byte{0xf3, 0x0f, 0x1e, 0xfa, 0xe8, 0, 0, 0, 0}
	called = []byte{0xe8, 0, 0, 0, 0}
	jumped = []byte{0xe9, 0, 0, 0, 0}
	// movabs $…,%r10; call *%r10: not what LLVM emits
	otherRegister = []byte{0x49, 0xba, 0x88, 0x77, 0x66, 0x55, 0x44, 0x33, 0x22, 0x11, 0x41, 0xff, 0xd2, 0x0f, 0x1f, 0x00}
)

// TestMatch requires that a record matches a pc exactly if the convention of its kind of site permits it ("Stack maps and patch points in LLVM").
func TestMatch(t *testing.T) {
	const start, rewritten = 0x1000, 0xabcdef00
	statepoint := []stackmap.Location{{Kind: stackmap.Constant, Size: 8}, {Kind: stackmap.Constant, Size: 8}, {Kind: stackmap.Constant, Size: 8}}
	// shaped fits a statepoint with one deopt value, and a stackmap with four live values.
	shaped := append(append([]stackmap.Location{}, statepoint[:2]...), stackmap.Location{Kind: stackmap.Constant, Size: 8, Offset: 1}, stackmap.Location{Kind: stackmap.Indirect, Size: 8})
	reg := []stackmap.Location{{Kind: stackmap.Register, Size: 8}}
	for _, c := range []struct {
		name   string
		code   []byte
		record []stackmap.Location
		offset uint32
		site   *ir.Site // the site in the module; nil without a module
		pc     machine.Addr
		ret    bool
		moment frame.Moment // "" for no match
		kind   ir.SiteKind
		note   string
	}{
		{"statepoint, its callee running", nil, statepoint, 9, nil, start + 9, true, frame.InCall, ir.StatepointSite, ""},
		{"statepoint, its callee back", nil, statepoint, 9, nil, start + 9, false, frame.After, ir.StatepointSite, ""},
		{"statepoint elsewhere", nil, statepoint, 9, nil, start + 10, true, "", "", "no record here; nearest is record 2882400000, 1 bytes before"},
		{"shaped like a statepoint, with an id of its own", nil, shaped, 9, nil, start + 9, true, frame.Unknown, "", ""},
		{"shaped like a statepoint, its callee back or not yet called", nil, shaped, 9, nil, start + 9, false, frame.Unknown, "", ""},
		{"neither shaped nor known", nil, reg, 9, nil, start + 9, true, frame.Unknown, "", ""},
		{"stackmap reached", nil, reg, 9, &ir.Site{Kind: ir.StackMapSite}, start + 9, false, frame.Before, ir.StackMapSite, ""},
		{"stackmap right behind a call", nil, reg, 9, &ir.Site{Kind: ir.StackMapSite}, start + 9, true, frame.Before, ir.StackMapSite, ""},
		{"stackmap in its shadow", nil, reg, 9, &ir.Site{Kind: ir.StackMapSite, PatchBytes: 8}, start + 12, false, "", "", "no record here; nearest is record 7, 3 bytes before"},
		{"patchpoint, not run", patchpoint, reg, 0, nil, start, false, frame.Before, "", ""},
		{"patchpoint in call", patchpoint, reg, 0, nil, start + 13, true, frame.InCall, ir.PatchPointSite, ""},
		{"patchpoint, call back", patchpoint, reg, 0, nil, start + 13, false, frame.After, ir.PatchPointSite, ""},
		{"patchpoint, behind its nops", patchpoint, reg, 0, nil, start + 16, true, "", "", "no record here; nearest is record 7, 16 bytes before"},
		{"the false match", patchpoint, reg, 0, nil, start, true, "", "", "record 7 does not match: its patchpoint starts at this return address, and the call before it is still running"},
		{"the false match, known", nil, reg, 0, &ir.Site{Kind: ir.PatchPointSite, PatchBytes: 16}, start, true, "", "", "record 7 does not match: its patchpoint starts at this return address, and the call before it is still running"},
		{"patched region, known", patched, reg, 0, &ir.Site{Kind: ir.PatchPointSite, PatchBytes: 16}, start + 6, true, frame.InCall, ir.PatchPointSite, ""},
		{"patched region, unknown", patched, reg, 0, nil, start + 6, true, "", "", "no record here; nearest is record 7, 6 bytes before"},
		{"patched region, no call ends here", patched, reg, 0, &ir.Site{Kind: ir.PatchPointSite, PatchBytes: 16}, start + 14, true, "", "", "record 7 does not match: this address is in its region, but no call in the region ends here"},
		{"past the region", patched, reg, 0, &ir.Site{Kind: ir.PatchPointSite, PatchBytes: 4}, start + 6, true, "", "", "no record here; nearest is record 7, 6 bytes before"},
		{"endbr64 in the region", endbr, reg, 0, &ir.Site{Kind: ir.PatchPointSite, PatchBytes: 9}, start + 9, true, frame.InCall, ir.PatchPointSite, ""},
		{"another register", otherRegister, reg, 0, nil, start + 13, true, "", "", "no record here; nearest is record 7, 13 bytes before"},
		{"statepoint, at its call", called, reg, 5, &ir.Site{Kind: ir.StatepointSite}, start, false, frame.Before, ir.StatepointSite, ""},
		{"statepoint without a module, at its call", called, statepoint, 5, nil, start, false, frame.Before, ir.StatepointSite, ""},
		{"deoptimize, at its call", called, reg, 5, &ir.Site{Kind: ir.DeoptimizeSite}, start, false, frame.Before, ir.DeoptimizeSite, ""},
		{"shaped like a statepoint, with an id of its own, at its call", called, shaped, 5, nil, start, false, "", "", "no record here; nearest is record 7, 5 bytes after"},
		{"neither shaped nor known, at a call", called, reg, 5, nil, start, false, "", "", "no record here; nearest is record 7, 5 bytes after"},
		{"stackmap right behind a call that has yet to run", called, reg, 5, &ir.Site{Kind: ir.StackMapSite}, start, false, "", "", "no record here; nearest is record 7, 5 bytes after"},
		{"statepoint, a caller's return address at its call", called, reg, 5, &ir.Site{Kind: ir.StatepointSite}, start, true, "", "", "no record here; nearest is record 7, 5 bytes after"},
		{"statepoint, before its call", called, reg, 6, &ir.Site{Kind: ir.StatepointSite}, start, false, "", "", "no record here; nearest is record 7, 6 bytes after"},
		{"statepoint behind a jump", jumped, reg, 5, &ir.Site{Kind: ir.StatepointSite}, start, false, "", "", "no record here; nearest is record 7, 5 bytes after"},
		{"a call in a statepoint's region", patched, reg, 16, &ir.Site{Kind: ir.StatepointSite, PatchBytes: 16}, start + 6, true, frame.InCall, ir.StatepointSite, ""},
		{"a call in a deoptimize call's region, back", patched, reg, 16, &ir.Site{Kind: ir.DeoptimizeSite, PatchBytes: 16}, start + 6, false, frame.After, ir.DeoptimizeSite, ""},
		{"a statepoint's region that has not run", patched, reg, 16, &ir.Site{Kind: ir.StatepointSite, PatchBytes: 16}, start, false, frame.Before, ir.StatepointSite, ""},
		{"a call before a statepoint's region", patched, reg, 16, &ir.Site{Kind: ir.StatepointSite, PatchBytes: 10}, start + 6, true, "", "", "no record here; nearest is record 7, 10 bytes after"},
		{"a statepoint's region, no call ends here", patched, reg, 16, &ir.Site{Kind: ir.StatepointSite, PatchBytes: 16}, start + 14, true, "", "", "record 7 does not match: this address is in its region, but no call in the region ends here"},
		{"a region before a stackmap is none", patched, reg, 16, &ir.Site{Kind: ir.StackMapSite, PatchBytes: 16, Instr: &ir.Instr{}}, start + 6, true, "", "", "no record here; nearest is record 7, 10 bytes after"},
		{"stackmap at a return address that no call has", patched, reg, 14, &ir.Site{Kind: ir.StackMapSite}, start + 14, true, "", "", "record 7 does not match: no call ends at this return address now: a patch here was removed or overwritten"},
		{"unreadable code", nil, reg, 0, nil, start + 13, true, "", "", "no record here; nearest is record 7, 13 bytes before"},
	} {
		t.Run(c.name, func(t *testing.T) {
			id := stackmap.RecordID(7)
			if len(c.record) == 3 {
				id = rewritten
			}
			maps := frametest.MapOf(t, nil, stackmap.BlobFunction{Addr: start, Records: []stackmap.Record{{ID: id, Offset: c.offset, Locations: c.record}}})
			m := &deopt.Matcher{Arch: machine.AMD64, Memory: bytesAt{start, c.code}, Records: stackmap.NewIndex(maps), Function: start,
				Sites: func(sites.RecordEntry) (sites.Candidates, error) {
					if c.site == nil {
						return sites.Candidates{}, nil
					}
					return sites.Candidates{Sites: []*ir.Site{c.site}}, nil
				}}
			got, notes, err := m.Find(c.pc, c.ret)
			require.NoError(t, err)
			if c.moment == "" {
				require.Nil(t, got)
				require.Equal(t, []deopt.RecordNote{{Record: uint64(id), Text: c.note}}, notes)
				return
			}
			require.NotNil(t, got)
			require.Equal(t, c.moment, got.Moment)
			require.Equal(t, c.kind, got.Kind)
			require.Empty(t, notes)
		})
	}
}

// TestMatchOfAnotherFunction requires that a record of the previous function never matches a frame, however near it is.
func TestMatchOfAnotherFunction(t *testing.T) {
	maps := frametest.MapOf(t, nil, stackmap.BlobFunction{Addr: 0x1000, Records: []stackmap.Record{{ID: 1, Locations: []stackmap.Location{{Kind: stackmap.Register, Size: 8}}}}})
	m := &deopt.Matcher{Memory: bytesAt{0x1000, patchpoint}, Records: stackmap.NewIndex(maps), Function: 0x100d,
		Sites: func(sites.RecordEntry) (sites.Candidates, error) { return sites.Candidates{}, nil }}
	got, notes, err := m.Find(0x100d, true)
	require.NoError(t, err)
	require.Nil(t, got)
	require.Empty(t, notes)
}
