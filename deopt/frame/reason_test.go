package frame

import (
	"errors"
	"fmt"
	"os"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestCodesAreDocumented requires that doc/user/formats.md lists all codes of reasons, and no other.
func TestCodesAreDocumented(t *testing.T) {
	text, err := os.ReadFile("../../doc/user/formats.md")
	require.NoError(t, err)
	section := regexp.MustCompile(`(?s)\n## Codes of reasons\n(.*?)\n## `).FindStringSubmatch(string(text))
	require.NotNil(t, section)
	listed := map[Code]bool{}
	for _, row := range regexp.MustCompile("(?m)^\\| (`.*?`) \\|").FindAllStringSubmatch(section[1], -1) {
		for _, code := range regexp.MustCompile("`([a-z-]+)`").FindAllStringSubmatch(row[1], -1) {
			require.False(t, listed[Code(code[1])], "%s is listed twice", code[1])
			listed[Code(code[1])] = true
		}
	}
	for _, code := range []Code{MemoryUnreadable, MemoryNotCopied, MemoryRedacted, MemoryPending, MemoryGone} { // codes of memory errors
		require.True(t, listed[code], "%s is not listed", code)
		delete(listed, code)
	}
	for code := range texts {
		require.True(t, listed[code], "%s is not listed", code)
		delete(listed, code)
	}
	require.Empty(t, listed)
}

// TestReason requires the text of a reason, and that CodeOf finds its code inside of other errors. It also requires that Clear removes all parts of a
// slot's value.
func TestReason(t *testing.T) {
	why := Because(CallerSaved, "rdx", 3)
	require.EqualError(t, why, "rdx is caller-saved and frame #3 does not preserve it")
	require.Equal(t, CallerSaved, CodeOf(fmt.Errorf("its address: %w", why)))
	require.Equal(t, SaveUnreadable, CodeOf(Because(SaveUnreadable, 1, "rbx", why)), "the outermost one")
	require.Equal(t, Unreadable, CodeOf(errors.New("other")))

	s := Slot{Name: "%i", Value: "1", Hex: "0x1", Bytes: []byte{1}, Status: OK, GC: &GC{}}
	s.Clear(Missing, why)
	require.Equal(t, Slot{Name: "%i", Status: Missing, Code: CallerSaved, Reason: why.Error()}, s)
	s = Slot{Name: "%i", Value: "1", Hex: "0x1", Bytes: []byte{1}, Status: OK}
	s.Doubt(Because(GuessedFrame, "a word that looks like a return address"))
	require.Equal(t, Slot{Name: "%i", Value: "1", Hex: "0x1", Bytes: []byte{1}, Status: Guessed, Code: GuessedFrame, Reason: "a word that looks like a return address"}, s)
}

func TestReasonWithoutSubject(t *testing.T) {
	r := Because(CallerSaved, "rdx", 3)
	require.Equal(t, "is caller-saved and frame #3 does not preserve it", r.Without("rdx"))
	require.Equal(t, r.Error(), r.Without("rcx"))
	require.Equal(t, "it was not saved", Because(NotCaptured, "rdx", "it was not saved").Without("rdx"))
}
