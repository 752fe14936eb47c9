package verify_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/test/clitest"
	"example.com/reframe/test/livetest"
	"example.com/reframe/test/tinyvmtest"
)

// shop exits from compiled code at position 19 of Shop.sell, when its argument has reached 30. The frame there has a monitor, and a virtual Item
// whose price was set twice. The field total of an allocated object was set, too.
const shop = `class Item price
class Shop total

method Main.main 0 1
  int 0
  set 0
next:
  new Shop
  get 0
  call Shop.sell
  print
  get 0
  int 1
  add
  dup
  set 0
  int 34
  lt
  if next
  get 0
  return

method Shop.sell 2 3
  get 0
  enter
  new Item
  set 2
  get 2
  get 1
  putfield price
  get 0
  get 1
  putfield total
  get 2
  get 1
  int 7
  add
  putfield price
  get 1
  int 30
  lt
  if usual
  get 2
  getfield price
  get 1
  get 0
  getfield total
  add
  add
  exit
  return
usual:
  get 2
  getfield price
  exit
  return
`

// TestVerifyWithNamesFaults requires that verify names each of six faults planted in tinyvm's compiler in one report, by its operand, position or
// field.
func TestVerifyWithNamesFaults(t *testing.T) {
	livetest.Slow(t)
	t.Parallel()
	binary, program := tinyvmtest.Binary(t, 19), filepath.Join(t.TempDir(), "shop.tvm")
	require.NoError(t, os.WriteFile(program, []byte(shop), 0o644))
	for _, c := range []struct {
		fault string
		says  []string // patterns of the differences, one for each line
	}{
		{"", nil},
		{"swap", []string{ // exchanges the operands of locals 0 and 1
			`local\[0\] of Shop\.sell holds what should be in local\[1\]: it is i32 30, should be ref 0x[0-9a-f]+`,
			`local\[1\] of Shop\.sell holds what should be in local\[0\]: it is ref 0x[0-9a-f]+, should be i32 30`}},
		{"position", []string{`position 20 of Shop\.sell should be 19`}},                    // position one too high
		{"mode", []string{`resume of Shop\.sell is after, should be reexecute`}},            // the other way to resume
		{"monitor", []string{`monitor\[0\] of Shop\.sell is missing: it should be ref .*`}}, // omits the last monitor
		{"history", []string{ // gives each field its previous value
			`object\[0\]\+16 is stale since Shop\.sell @ 14 \(putfield price\): it is 30, should be 0xffff000000000025`}},
		{"barrier", []string{ // omits marking the card of an object that compiled code stores to
			`memory at tinyvm_cards(\+0x[0-9a-f]+)? is 00, should be 01: the store by Shop\.sell @ 9 \(putfield total\) is missing`}},
	} {
		t.Run("fault "+c.fault, func(t *testing.T) {
			t.Parallel()
			r := clitest.Run(t, "verify", "--with", binary+" --serve "+program, "--from-entry", "--", binary, "--entries", "--right-entries", "--fault", c.fault, program)
			if c.fault == "" {
				require.Equal(t, 0, r.Code, r.Stderr)
				require.Contains(t, r.Stderr, " 0 different, 0 not comparable")
				require.NotContains(t, r.Stderr, "compared only after the exit")
				return
			}
			require.Equal(t, 3, r.Code, r.Stderr)
			require.Len(t, regexp.MustCompile(`(?m)^exit \d+, hit \d+ of record`).FindAllString(r.Stderr, -1), 1, r.Stderr)
			_, after, found := strings.Cut(r.Stderr, " frames: the run from Shop.sell @ 0 ")
			if c.fault == "barrier" { // the first activation already differs, at its return
				_, after, found = strings.Cut(r.Stderr, " from the run from Shop.sell @ 0 ")
			}
			require.True(t, found, r.Stderr)
			lines := strings.Split(after, "\n")[1:]
			for n, says := range c.says {
				require.Regexp(t, "^        "+says+"$", lines[n], r.Stderr)
			}
			require.NotRegexp(t, "^        ", lines[len(c.says)], r.Stderr)
		})
	}
}

// count exits from compiled code at position 9 of Loop.count when its fuel is used up. Between iterations, the states there differ only in local 1.
const count = `method Main.main 0 1
  int 0
  set 0
next:
  int 3
  call Loop.count
  print
  get 0
  int 1
  add
  dup
  set 0
  int 40
  lt
  if next
  int 1000000
  call Loop.count
  return

method Loop.count 1 2
  int 0
  set 1
loop:
  get 1
  int 1
  add
  set 1
  get 1
  get 0
  lt
  if loop
  get 1
  return
`

// TestVerifyWithFindsStateInLongLoop requires that the state of an exit in iteration 441 of a loop is found, although over 256 earlier states are
// similar.
func TestVerifyWithFindsStateInLongLoop(t *testing.T) {
	livetest.Slow(t)
	t.Parallel()
	binary, program := tinyvmtest.Binary(t, 19), clitest.TempFile(t, "count.tvm", count)
	r := clitest.Run(t, "verify", "--with", binary+" --serve "+program, "--from-entry", "--timeout", "2m", "--", binary, "--fuel", "600", "--entries", "--right-entries", program)
	require.Equal(t, 0, r.Code, r.Stderr)
	require.Contains(t, r.Stderr, ": 39 same, 0 different, 0 not comparable")
	require.NotContains(t, r.Stderr, "compared only after the exit")
}

// early exits from compiled code at position 6 of Shop.sell, before the field total is set.
const early = `class Shop total

method Main.main 0 1
  int 0
  set 0
next:
  new Shop
  get 0
  call Shop.sell
  print
  get 0
  int 1
  add
  dup
  set 0
  int 34
  lt
  if next
  get 0
  return

method Shop.sell 2 2
  get 0
  enter
  get 1
  int 30
  lt
  if usual
  get 0
  int 1
  putfield total
usual:
  get 0
  exit
  get 1
  return
`

// TestVerifyWithNamesEarlyStore requires that the report names a store that compiled code makes before an exit, but the interpreter only after it.
func TestVerifyWithNamesEarlyStore(t *testing.T) {
	livetest.Slow(t)
	t.Parallel()
	binary, program := tinyvmtest.Binary(t, 19), clitest.TempFile(t, "early.tvm", early)
	file := filepath.Join(t.TempDir(), "exits.json")
	verify := func(fault string, args ...string) clitest.Result {
		return clitest.Run(t, append(append([]string{"verify", "--with", binary + " --serve " + program, "--from-entry"}, args...),
			"--", binary, "--entries", "--right-entries", "--fault", fault, program)...)
	}
	r := verify("")
	require.Equal(t, 0, r.Code, r.Stderr)
	require.Contains(t, r.Stderr, " 0 different, 0 not comparable")
	r = verify("early")
	require.Equal(t, 3, r.Code, r.Stderr)
	require.Regexp(t, `(?m)^        memory at .*\+0x[0-9a-f]+ is 010000000000ffff, should be 0000000000000000: the store by Shop\.sell @ 8 \(putfield total\) is too early$`, r.Stderr)
	r = verify("early", "--json", "-o", file)
	require.Equal(t, 3, r.Code, r.Stderr)
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Contains(t, string(text), `"early":"Shop.sell @ 8 (putfield total)"`)
	for line := range strings.Lines(string(text)) {
		clitest.RequireValid(t, "verify.schema.json", strings.TrimSpace(line))
	}
}

// TestVerifyWithComparesNoFramesAtReturn requires that a report does not call frames equal if only the result was compared.
func TestVerifyWithComparesNoFramesAtReturn(t *testing.T) {
	livetest.Slow(t)
	t.Parallel()
	binary := tinyvmtest.Binary(t, 19)
	program := clitest.TempFile(t, "result.tvm", strings.Replace(early, "usual:\n", "usual:\n  int 20\n  int 22\n  add\n  set 1\n", 1))
	r := clitest.Run(t, "verify", "--with", binary+" --serve "+program, "--from-entry", "--limit", "1", "--", binary, "--fault", "constant", "--entries", "--right-entries", program)
	require.Equal(t, 3, r.Code, r.Stderr)
	require.Contains(t, r.Stderr, "  different result, i64 in rax\n")
	require.NotContains(t, r.Stderr, "frames equal")
}

// TestVerifyWithLimitsStepsFromEntry requires that a run by single instructions ends at the limit of --steps.
func TestVerifyWithLimitsStepsFromEntry(t *testing.T) {
	livetest.Slow(t)
	t.Parallel()
	binary, program := tinyvmtest.Binary(t, 19), clitest.TempFile(t, "count.tvm", count)
	r := clitest.Run(t, "verify", "--with", binary+" --serve "+program, "--from-entry", "--limit", "1", "--steps", "1", "--", binary, "--fuel", "600", "--entries", program)
	require.NotEqual(t, 0, r.Code, r.Stderr)
	require.Contains(t, r.Stderr, "  1  its interpreter cannot continue: it has run 16 instructions, the limit of --steps\n")
}
