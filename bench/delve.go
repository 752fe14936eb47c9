package main

import (
	"os"

	"github.com/go-delve/delve/pkg/proc"
	"github.com/go-delve/delve/pkg/proc/native"
	"github.com/stretchr/testify/require"
)

// delveTrace runs the process from exit to exit with Delve's native back end, and reads its registers at each.
func (b *bench) delveTrace(p tickProcess) watcher {
	var group *proc.TargetGroup
	quietly(b, func() (err error) {
		group, err = native.Attach(p.PID, nil, nil)
		return err
	})
	// Delve 1.27.2 does not remove its own breakpoint in the dynamic linker when it detaches, because it clears only a user's breakpoints. The
	// process would die when it reaches that breakpoint.
	for addr, own := range group.Selected.Breakpoints().M {
		for _, let := range own.Breaklets {
			let.Kind = proc.UserBreakpoint
		}
		require.NoError(b, group.Selected.ClearBreakpoint(addr))
	}
	_, err := group.Selected.SetBreakpoint(0, uint64(p.at), proc.UserBreakpoint, nil)
	require.NoError(b, err)
	return func() (told int) {
		quietly(b, func() error {
			for told < p.exits {
				if err := group.Continue(); err != nil {
					return err
				}
				regs, err := group.Selected.CurrentThread().Registers()
				if err != nil {
					return err
				}
				if regs.PC() != uint64(p.at) { // Delve also stops for internal reasons
					continue
				}
				if _, err := regs.Slice(true); err != nil {
					return err
				}
				told++
			}
			return group.Detach(false)
		})
		return told
	}
}

// quietly keeps Delve from writing to standard error, where it reports each program without DWARF information.
func quietly(b *bench, f func() error) {
	null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	require.NoError(b, err)
	defer null.Close()
	real := os.Stderr
	os.Stderr = null
	defer func() { os.Stderr = real }()
	require.NoError(b, f())
}
