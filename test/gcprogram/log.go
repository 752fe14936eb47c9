package gcprogram

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Collection is a collection that the collector logged.
type Collection struct {
	Number int
	Thread int
	Frames []Frame // innermost first
	Moved  []Move  // the objects, in the order of their copies

	// Objects and Bytes are the number and the total size of the objects that are reachable from roots that point to the start of an object, without
	// stack objects.
	Objects, Bytes uint64
}

// Frame is a compiled frame that the collector walked.
type Frame struct {
	PC       uint64 // the return address into the function
	SP       uint64 // the stack pointer after that return
	Function uint64 // start address of the function
	ID       uint64 // id of the record
	Roots    []Root // in the order of the visits; a slot may occur in several pairs
}

// Root is a pair that the collector visited. The slot and the base slot of a stack object are the same.
type Root struct {
	Slot, BaseSlot uint64 // addresses
	Old, OldBase   uint64 // their contents before the collection
	New, NewBase   uint64 // the pointer that the collector stored in the slot, and the new address of the object
	StackObject    bool   // the slot is a stack object that holds the pointer
}

// Move is an object that the collector moved.
type Move struct{ From, To, Size uint64 }

// ReadLog reads the log that a program wrote with -log. The last line may be cut if the program was killed.
func ReadLog(t testing.TB, path string) (all []Collection) {
	t.Helper()
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	for line := range strings.Lines(string(text)) {
		if !strings.HasSuffix(line, "\n") {
			break
		}
		kind, rest, _ := strings.Cut(line, " ")
		if kind == "collection" {
			all = append(all, Collection{})
		}
		c := &all[len(all)-1]
		switch kind {
		case "collection":
			_, err = fmt.Sscanf(rest, "%d thread %d\n", &c.Number, &c.Thread)
		case "frame":
			var f Frame
			_, err = fmt.Sscanf(rest, "0x%x 0x%x 0x%x %d\n", &f.PC, &f.SP, &f.Function, &f.ID)
			c.Frames = append(c.Frames, f)
		case "reachable":
			_, err = fmt.Sscanf(rest, "%d %d\n", &c.Objects, &c.Bytes)
		case "moved":
			var m Move
			_, err = fmt.Sscanf(rest, "0x%x 0x%x %d\n", &m.From, &m.To, &m.Size)
			c.Moved = append(c.Moved, m)
		case "root", "object":
			var frame int
			r := Root{StackObject: kind == "object"}
			if _, err = fmt.Sscanf(rest, "%d 0x%x 0x%x 0x%x 0x%x 0x%x 0x%x\n", &frame, &r.Slot, &r.BaseSlot, &r.Old, &r.OldBase, &r.New, &r.NewBase); err == nil {
				require.Less(t, frame, len(c.Frames), line)
				c.Frames[frame].Roots = append(c.Frames[frame].Roots, r)
			}
		default:
			require.Fail(t, "unknown line", line)
		}
		require.NoError(t, err, line)
	}
	return all
}
