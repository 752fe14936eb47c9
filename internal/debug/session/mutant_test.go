package session_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/internal/debug/session"
	"example.com/reframe/test/livetest"
)

// workMutants lists mutants of lines of @work, each with the original line: another operation, constant or operand.
func workMutants() (list [][2]string) {
	body := work[strings.Index(work, "define i64 @work("):strings.Index(work, "define i64 @entry(")]
	op := regexp.MustCompile(`= (add|sub|mul|xor|or|and) `)
	number := regexp.MustCompile(`(i64 |, |ult i64 %i1, )(\d+)\b`)
	operand := regexp.MustCompile(`%(b|m|a|c|d|acc|sq|t|u|v|i|i1|acc2|r)\b`)
	for line := range strings.Lines(body) {
		line = strings.TrimSpace(line)
		add := func(with string) {
			if with != line && strings.Count(work, line) == 1 {
				list = append(list, [2]string{line, with})
			}
		}
		for _, other := range []string{"add", "sub", "mul", "xor", "or", "and"} {
			add(op.ReplaceAllString(line, "= "+other+" "))
		}
		if strings.Contains(line, "stackmap") {
			continue
		}
		for _, at := range number.FindAllStringSubmatchIndex(line, -1) {
			for _, with := range []string{"0", "1", "8"} {
				add(line[:at[4]] + with + line[at[5]:])
			}
		}
		for n, at := range operand.FindAllStringIndex(line, -1) {
			if n > 0 || strings.HasPrefix(line, "store") { // the first match is the instruction's name
				add(line[:at[0]] + "%n" + line[at[1]:])
				add(line[:at[0]] + "%m" + line[at[1]:])
			}
		}
	}
	return list
}

// TestBisectNamesMutants changes one instruction of the module. If native code then differs from the interpreter, the instructions that Bisect names
// must include the changed one. The test is slow.
func TestBisectNamesMutants(t *testing.T) {
	livetest.Slow(t)
	parted, alone := 0, 0
	for n, c := range workMutants() {
		if livetest.Out(3, n) {
			continue
		}
		t.Run(fmt.Sprintf("%s: %s", c[0], c[1]), func(t *testing.T) {
			s := atWork(t, c[0], c[1])
			p, err := s.Bisect(t.Context())
			require.NoError(t, err)
			toEnd(t, s)
			if p.By == session.Agreed {
				require.Empty(t, p.Why)
				return
			}
			parted++
			require.NotNil(t, p.Instr, p.Why)
			require.Contains(t, texts(p.Suspects...), c[1], "%v, by %v", texts(p.Instr), p.By)
			if texts(p.Instr)[0] == c[1] {
				alone++
			}
		})
	}
	t.Logf("%d parted, of %d the changed instruction is the one that is named", parted, alone)
	require.Greater(t, parted, 20)
	require.Greater(t, alone, parted/3)
}
