package system

import (
	"errors"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestEachRound requires that the rounds end after one that finds no new threads, after an error, and after the maximum number.
func TestEachRound(t *testing.T) {
	t.Parallel()
	rounds := 0
	known := map[int]bool{}
	require.NoError(t, EachRound(os.Getpid(), func(tids []int) (found bool, err error) {
		rounds++
		for _, tid := range tids {
			found = found || !known[tid]
			known[tid] = true
		}
		return found, nil
	}))
	require.GreaterOrEqual(t, rounds, 2)
	require.True(t, known[os.Getpid()])
	failed := errors.New("failed")
	require.ErrorIs(t, EachRound(os.Getpid(), func([]int) (bool, error) { return true, failed }), failed)
	rounds = 0
	require.EqualError(t, EachRound(os.Getpid(), func([]int) (bool, error) { rounds++; return true, nil }), "new threads kept starting for 1000 rounds")
	require.Equal(t, Rounds, rounds)
	require.ErrorIs(t, EachRound(1<<30, func([]int) (bool, error) { panic("no such process") }), os.ErrNotExist)
}

// TestProc requires that data which /proc lacks is empty or an error, and that a running process is late only after a long wait.
func TestProc(t *testing.T) {
	t.Parallel()
	own, gone := os.Getpid(), 1<<30
	require.NotEmpty(t, StatusField(own, "Uid"))
	require.Empty(t, StatusField(own, "Uid:"))
	require.Empty(t, StatusField(own, "Ui"))
	require.Empty(t, StatusField(gone, "Uid"))
	fields, err := StatFields(own)
	require.NoError(t, err)
	require.Greater(t, len(fields), 40)
	_, err = StatFields(gone)
	require.ErrorIs(t, err, os.ErrNotExist)
	require.Equal(t, byte('?'), ThreadState(gone, gone))
	require.True(t, Ended(gone, gone))
	require.False(t, Ended(own, own))
	require.Empty(t, ThreadName(gone, gone))
	require.NotEmpty(t, CommandLine(own))
	_, late := Late(gone, gone, StopPatience)
	require.False(t, late)
	state, late := Late(gone, gone, 2*StopPatience)
	require.True(t, late)
	require.Equal(t, byte('?'), state)
}
