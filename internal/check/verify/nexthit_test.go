package verify

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/test/frametest"
	"example.com/reframe/test/livetest"
)

// TestVerifyUntilTheNextHit requires that a loop that does not end within the limits is compared with the next hit of its record.
func TestVerifyUntilTheNextHit(t *testing.T) {
	livetest.Slow(t)
	text, err := os.ReadFile(livetest.Testdata(t, "programs", "tick.ll"))
	require.NoError(t, err)
	forever := strings.Replace(string(text), "%c = icmp ult i64 %i1, 1000", "%c = icmp ult i64 %i1, 50000000\n  store i64 %x1, ptr @kept", 1)
	forever = strings.Replace(forever, "declare void", "@kept = global i64 0\ndeclare void", 1)
	require.NotEqual(t, string(text), forever)
	path, m := frametest.Written(t, "forever.ll", forever)
	command := livetest.ObjectHostCommand(t, frametest.LLC(t, 19, path, "-O2", "-relocation-model=pic"), livetest.ObjectHostOptions{})
	o := Options{Limit: 20, Steps: 5000}
	o.Modules = append(o.Modules, m)
	summary, all := verified(t, command, o)
	require.Equal(t, uint64(0), summary.Different)
	compared := 0
	for _, v := range all {
		if v.Status == Same {
			compared++
			require.Equal(t, &Again{Hit: v.Hit + 1}, v.Again)
			continue
		}
		require.Equal(t, "native code did not return: it ran 5000 instructions", v.Why)
	}
	require.Equal(t, 18, compared, "of 20: the last of 16, and of the 4 that followed, has no next one")

	// With Every, the next verified hit is not the next hit of the record.
	o.Every, o.Limit = 3, 10
	summary, all = verified(t, command, o)
	require.Equal(t, uint64(0), summary.Different)
	require.Equal(t, uint64(9), summary.Same)
	for _, v := range all {
		if v.Status == Same {
			require.Equal(t, &Again{Hit: v.Hit + 3}, v.Again)
		}
	}
	o.Every = 0

	for _, c := range []struct{ old, new, slot string }{
		{"%a = mul i64 %acc, 31", "%a = mul i64 %acc, 33", "%acc"},
		{"store i64 %x1, ptr @kept", "store i64 %y1, ptr @kept", ""},
	} {
		_, m = frametest.Written(t, "other.ll", strings.Replace(forever, c.old, c.new, 1))
		o.Modules[0], o.Skip, o.Limit = m, 2, 2
		_, all = verified(t, command, o)
		require.Equal(t, Different, all[1].Status, all[1].Why)
		require.NotNil(t, all[1].Again)
		if c.slot == "" {
			require.Equal(t, uint64(1), all[1].Again.Words)
			continue
		}
		require.Equal(t, c.slot, all[1].Again.Slots[0].Slot)
	}
}
