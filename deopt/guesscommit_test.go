package deopt_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/deopt"
	"example.com/reframe/internal/check/commit"
	"example.com/reframe/test/frametest"
)

// TestCommitOfAGuess requires that a guess is never committed, forced or not.
func TestCommitOfAGuess(t *testing.T) {
	for _, who := range []string{"near", "far"} {
		t.Run(who, func(t *testing.T) {
			p, o := hasReturned(t, who, "4104")
			session := frametest.Open(t, p)
			target, err := session.Target()
			require.NoError(t, err)
			v, err := deopt.Frames(target, o)
			require.NoError(t, err)
			s, err := v.Pick(deopt.Choice{Frame: -1, Force: true})
			require.NoError(t, err)
			_, _, err = commit.Prepare(t.Context(), session, s, deopt.Limits{})
			require.ErrorContains(t, err, "may not be the caller")
		})
	}
}
