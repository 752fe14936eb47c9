package html

import (
	"encoding/hex"
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/deopt"
	"example.com/reframe/internal/report/explain"
	"example.com/reframe/test/frametest"
	"example.com/reframe/test/livetest"
)

// TestRecordIsReadobjs requires that the rows of the record agree with llvm-readobj's output for the same file, and that the bytes are those of the
// file. The test decodes the bytes again, by the documented format ("Stack Map Format").
func TestRecordIsReadobjs(t *testing.T) {
	for _, program := range []string{"jit_pp.ll", "jit_sp.ll"} {
		p := livetest.Linked(t, 19, program)
		v := frametest.Look(t, p, true, deopt.Options{})
		e, err := explain.Explain(v, explain.Question{Frame: -1})
		require.NoError(t, err)
		at := Of(v, e, nil).Places[0]
		exe, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", p.PID))
		require.NoError(t, err)
		text := livetest.Printed(t, livetest.LLVM(t, 19, "llvm-readobj"), "--stackmap", exe)

		id := at.Place.Records[0].ID
		_, text, found := strings.Cut(text, fmt.Sprintf("Record ID: %d, ", id))
		require.True(t, found, text)
		text, _, _ = strings.Cut(text, "Record ID:")
		var theirs []string
		for _, m := range regexp.MustCompile(`(?m)^ +#\d+: (.*?)(?:, size: (\d+))?$`).FindAllStringSubmatch(text, -1) {
			theirs = append(theirs, m[1]+" "+m[2])
		}
		var ours []string
		for _, row := range at.Record.Rows {
			if row.Part != "location" {
				continue
			}
			require.Len(t, row.Fields, 6)
			var all string
			for _, f := range row.Fields {
				all += strings.ReplaceAll(f.Bytes, " ", "")
			}
			b, err := hex.DecodeString(all)
			require.NoError(t, err)
			require.Len(t, b, 12)
			size, reg, offset := int(b[2])|int(b[3])<<8, int(b[4])|int(b[5])<<8, int32(uint32(b[8])|uint32(b[9])<<8|uint32(b[10])<<16|uint32(b[11])<<24)
			require.Equal(t, fmt.Sprint(size), row.Fields[2].Value)
			switch b[0] {
			case 1:
				ours = append(ours, fmt.Sprintf("Register R#%d %d", reg, size))
			case 2:
				ours = append(ours, fmt.Sprintf("Direct R#%d + %d %d", reg, offset, size))
			case 3:
				ours = append(ours, fmt.Sprintf("Indirect [R#%d + %d] %d", reg, offset, size))
			case 4:
				ours = append(ours, fmt.Sprintf("Constant %d %d", uint32(offset), size))
				require.Contains(t, row.Says, fmt.Sprintf("the constant %d", offset))
			case 5:
				_, constant, found := strings.Cut(row.Says, "of the constants, ")
				require.True(t, found)
				constant, _, _ = strings.Cut(constant, " ")
				n, err := strconv.ParseInt(constant, 10, 64)
				require.NoError(t, err)
				ours = append(ours, fmt.Sprintf("ConstantIndex #%d (%d) %d", offset, n, size))
			}
			_, kind, _ := strings.Cut(row.Fields[0].Value, " ")
			require.True(t, strings.HasPrefix(ours[len(ours)-1], kind+" "), row.Fields[0].Value)
		}
		require.Equal(t, theirs, ours, text)

		outs := regexp.MustCompile(`(\d+) live-outs: \[(.*)\]`).FindStringSubmatch(text)
		require.NotNil(t, outs)
		var lives []string
		for _, row := range at.Record.Rows {
			if row.Part == "live-out" {
				register, _, _ := strings.Cut(row.Fields[0].Value, " ")
				lives = append(lives, fmt.Sprintf("R#%s (%s-bytes)", register, row.Fields[2].Value))
			}
		}
		require.Equal(t, strings.TrimSpace(outs[2]), strings.Join(lives, " "))

		// Compare with the bytes at the same offsets in the section of the file.
		section := livetest.Printed(t, livetest.LLVM(t, 19, "llvm-readobj"), "--hex-dump=.llvm_stackmaps", exe)
		bytes := dumped(t, section)
		for _, row := range at.Record.Rows {
			pos, err := strconv.ParseInt(row.Pos, 0, 64)
			require.NoError(t, err)
			for n, f := range row.Fields {
				raw, err := hex.DecodeString(strings.ReplaceAll(f.Bytes, " ", ""))
				require.NoError(t, err)
				if row.Part != "function" || n > 0 { // the loader relocates the address of a function
					require.Equal(t, bytes[pos:][:len(raw)], raw, "%s at %d", f.Name, pos)
				}
				pos += int64(len(raw))
			}
		}
	}
}

// dumped returns the bytes of a section that was printed in hexadecimal.
func dumped(t *testing.T, text string) (all []byte) {
	t.Helper()
	for _, m := range regexp.MustCompile(`(?m)^0x[0-9a-f]+ ((?:[0-9a-f]+ ){1,4})`).FindAllStringSubmatch(text, -1) {
		b, err := hex.DecodeString(strings.ReplaceAll(m[1], " ", ""))
		require.NoError(t, err)
		all = append(all, b...)
	}
	require.NotEmpty(t, all, text)
	return all
}
