package ptrace

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/deopt/frame"
	"example.com/reframe/internal/machine"
	"example.com/reframe/test/livetest"
)

// secretSize and besideSize are the sizes of the secrets in testdata/secrets.c and of the bytes next to them.
const secretSize, besideSize = 32, 8

// secretive starts testdata/secrets.c, and returns the address and the text of each secret.
func secretive(t *testing.T) (p *livetest.Process, at map[string]machine.Addr, secrets map[string][]byte) {
	t.Helper()
	p = program(t, "secrets.c", []string{"-g"})
	at, secrets = map[string]machine.Addr{}, map[string][]byte{}
	mem, err := os.Open(fmt.Sprintf("/proc/%d/mem", p.PID))
	require.NoError(t, err)
	defer mem.Close()
	for line := range strings.Lines(p.Output()) {
		var name string
		var addr uint64
		if n, _ := fmt.Sscanf(line, "%s %v", &name, &addr); n == 2 {
			at[name], secrets[name] = machine.Addr(addr), make([]byte, secretSize)
			_, err := mem.ReadAt(secrets[name], int64(addr))
			require.NoError(t, err)
		}
	}
	require.Len(t, at, 4, p.Output())
	return p, at, secrets
}

// holdsPart reports whether a file contains 8 consecutive bytes of a secret.
func holdsPart(t *testing.T, file string, secret []byte) bool {
	t.Helper()
	content, err := os.ReadFile(file)
	require.NoError(t, err)
	for i := 0; i+8 <= len(secret); i++ {
		if bytes.Contains(content, secret[i:i+8]) {
			return true
		}
	}
	return false
}

// recordRedacted records a process without the memory that the redactions select.
func recordRedacted(t *testing.T, p *livetest.Process, memory CoreMemory, redactions ...string) (path string, out *RecordedCore) {
	t.Helper()
	target, err := Capture(p.PID, Options{Record: true, Hold: memory != Minimal})
	require.NoError(t, err)
	defer target.Close()
	path = filepath.Join(t.TempDir(), "core")
	out, err = target.WriteCore(t.Context(), path, RecordOptions{Memory: memory, Redact: parsed(t, redactions...)})
	require.NoError(t, err)
	return path, out
}

func parsed(t *testing.T, texts ...string) (list []Redaction) {
	t.Helper()
	for _, text := range texts {
		r, err := ParseRedaction(text)
		require.NoError(t, err)
		list = append(list, r)
	}
	return list
}

// requireRedacted requires that the core contains none of the secrets, that reads of secrets report the redaction, and that the adjacent bytes are
// available.
func requireRedacted(t *testing.T, path string, at map[string]machine.Addr, secrets map[string][]byte, having ...string) {
	t.Helper()
	core := openCore(t, path)
	for name, secret := range secrets {
		require.False(t, holdsPart(t, path, secret), name)
		for _, one := range []machine.Addr{at[name], at[name] + secretSize - 1} {
			var missing *machine.MemoryError
			require.ErrorAs(t, core.ReadMemory(make([]byte, 1), one), &missing, name)
			require.True(t, missing.Code == frame.MemoryRedacted, name)
			require.ErrorContains(t, missing, "redacted: left out of the core on request")
		}
		if slices.Contains(having, name) {
			beside := make([]byte, besideSize)
			require.NoError(t, core.ReadMemory(beside, at[name]-besideSize), name)
			require.Equal(t, "before"+name[:1]+"\x00", string(beside))
			require.NoError(t, core.ReadMemory(beside, at[name]+secretSize))
			require.Equal(t, "after"+name[:1]+"\x00\x00", string(beside))
		}
	}
	require.Contains(t, core.Notes, "160 bytes of memory were redacted (record --redact): values in them are unavailable")
}

// TestRedactedBytesAreNowhereInTheCore requires that each kind of core contains no redacted byte, and still contains the bytes next to them. A small
// core made from it must omit the same bytes. gdb must read the core, show all frames, and be unable to read the redacted bytes.
func TestRedactedBytesAreNowhereInTheCore(t *testing.T) {
	p, at, secrets := secretive(t)
	var redactions []string
	for _, a := range at {
		redactions = append(redactions, fmt.Sprintf("%v+%d", a, secretSize))
	}
	for _, memory := range []CoreMemory{Minimal, Writable, All} {
		plain, _ := recordRedacted(t, p, memory)
		for name, secret := range secrets {
			require.True(t, holdsPart(t, plain, secret), "without redaction: %s %s", memory, name)
		}
		path, out := recordRedacted(t, p, memory, redactions...)
		require.Len(t, out.Redacted, 5, "and the other place of the mapped file")
		requireRedacted(t, path, at, secrets, "global", "stack")

		thin := filepath.Join(t.TempDir(), "thin")
		_, err := openCore(t, path).WriteCore(t.Context(), thin, RecordOptions{Memory: Minimal})
		require.NoError(t, err)
		requireRedacted(t, thin, at, secrets, "stack")
		_, err = openCore(t, plain).WriteCore(t.Context(), thin, RecordOptions{Memory: Minimal, Redact: parsed(t, redactions...), Replace: true})
		require.NoError(t, err)
		requireRedacted(t, thin, at, secrets, "stack")
		gdb := func(core string) (frames, secret string) {
			text := output(t, "gdb", "-nx", "-batch", "-iex", "set auto-load off", "-iex", "set debuginfod enabled off",
				"-ex", "bt", "-ex", "frame function inner", "-ex", "print number", "-ex", fmt.Sprintf("x/32xb %v", at["stack"]),
				executable(t, "secrets.c", "-g"), core)
			_, text, _ = strings.Cut(text, "#0")
			before, after, _ := strings.Cut(text, "$1 = 4711\n")
			return before, after
		}
		want, _ := gdb(plain)
		require.Regexp(t, `(?s)pause.*inner.*outer.*main`, want)
		got, secret := gdb(path)
		require.Equal(t, want, got, memory)
		require.NotContains(t, secret, fmt.Sprintf("0x%02x\t0x%02x\t0x%02x", secrets["stack"][0], secrets["stack"][1], secrets["stack"][2]))
	}
}

// TestRedactByName requires that all mappings of a name are omitted. If it is the name of the stack, the command line in the kernel's note must also
// be omitted.
func TestRedactByName(t *testing.T) {
	p, _, secrets := secretive(t)
	target := survey(t, p.PID)
	for _, memory := range []CoreMemory{Minimal, Writable, All} {
		path, _ := recordRedacted(t, p, memory, "[heap]", "/memfd:secret", "secrets")
		require.Equal(t, []bool{false, false, false, true}, []bool{holdsPart(t, path, secrets["global"]), holdsPart(t, path, secrets["heap"]),
			holdsPart(t, path, secrets["mapped"]), holdsPart(t, path, secrets["stack"])}, memory)
		require.Equal(t, target.Command, openCore(t, path).Command)
		path, _ = recordRedacted(t, p, memory, "[stack]")
		require.Equal(t, []bool{true, false}, []bool{holdsPart(t, path, secrets["heap"]), holdsPart(t, path, secrets["stack"])}, memory)
		require.Empty(t, openCore(t, path).Command)
	}
}

// TestRedactionThatFitsNoMemory requires an error, and no core, for a name or an address that matches no memory of the process.
func TestRedactionThatFitsNoMemory(t *testing.T) {
	p, at, _ := secretive(t)
	target, err := Capture(p.PID, Options{Record: true})
	require.NoError(t, err)
	defer target.Close()
	mapped, found := target.Mapping(at["stack"])
	require.True(t, found)
	path := filepath.Join(t.TempDir(), "core")
	for text, want := range map[string]string{
		"[haep]":      "cannot redact [haep]: no mapping has this name; did you mean [heap]?",
		"nosuch":      "cannot redact nosuch: no mapping has this name",
		"0x1000+1":    "cannot redact 0x1000+1: 0x1000 is not mapped",
		"0x0-0xfffff": "cannot redact 0x0-0xfffff: 0x0 is not mapped",
		fmt.Sprintf("%v-%v", at["stack"], mapped.End+1): fmt.Sprintf("%v is not mapped", mapped.End),
	} {
		_, err = target.WriteCore(t.Context(), path, RecordOptions{Memory: Minimal, Redact: parsed(t, "[heap]", text)})
		require.ErrorContains(t, err, want)
		var e *RedactionError
		require.True(t, errors.As(err, &e))
		require.NoFileExists(t, path)
	}
}

// TestParseRedaction requires that ParseRedaction distinguishes ranges from names, and that ranges without memory are errors.
func TestParseRedaction(t *testing.T) {
	for text, want := range map[string]machine.Range{
		"0x1000-0x2000": {Start: 0x1000, End: 0x2000}, "0x1000+64": {Start: 0x1000, End: 0x1040}, "0X10+0x10": {Start: 0x10, End: 0x20}, "0x1000+010": {Start: 0x1000, End: 0x100a},
		"[heap]": {}, "/lib/x-1.so": {}, "libc.so.6": {}, "7z": {},
	} {
		r, err := ParseRedaction(text)
		require.NoError(t, err)
		require.Equal(t, Redaction{text, want}, r)
	}
	for text, want := range map[string]string{
		"":                      "the range is empty",
		"0x1000-0x1000":         "0x1000-0x1000: the range is empty",
		"0x1000+0":              "0x1000+0: the range is empty",
		"0x2000-0x1000":         "0x2000-0x1000: the end is before the start",
		"0xffffffffffffffff+2":  "the range ends outside of the address space",
		"0x1000":                "expected START-END or START+SIZE",
		"4096":                  "expected START-END or START+SIZE",
		"7ffd1000-7ffd2000":     `expected an address such as 0x1000, got "7ffd1000"`,
		"1000+64":               `expected an address such as 0x1000, got "1000"`,
		"0x1000-2000":           `expected an address such as 0x1000, got "2000"`,
		"0x1000+many":           `expected a size, got "many"`,
		"0x10000000000000000+1": "expected an address",
	} {
		_, err := ParseRedaction(text)
		require.ErrorContains(t, err, want, text)
	}
}

// TestCorruptListOfRedactedMemory requires that a note with a corrupt list is reported, and that the core can still be read.
func TestCorruptListOfRedactedMemory(t *testing.T) {
	p, at, _ := secretive(t)
	path, _ := recordRedacted(t, p, Minimal, fmt.Sprintf("%v+%d", at["stack"], secretSize))
	content, err := os.ReadFile(path)
	require.NoError(t, err)
	note, err := hex.DecodeString("0300465252454652414d4500") // type and owner of the note
	require.NoError(t, err)
	desc := bytes.Index(content, note) + len(note)
	require.Greater(t, desc, len(note))
	copy(content[desc+8:], make([]byte, 8)) // the end of the range
	require.NoError(t, os.WriteFile(path, content, 0o600))
	require.Contains(t, openCore(t, path).Notes, "its list of redacted memory is corrupt: the reason why memory is not in the core may be wrong")
}
