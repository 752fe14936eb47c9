package protocheck_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/internal/machine"
	"example.com/reframe/internal/vm/protocheck"
	"example.com/reframe/internal/vm/protocol"
	"example.com/reframe/test/livetest"
)

// page is a page at 0x2000 whose bytes are all 5.
type page struct{}

func (page) ReadMemory(p []byte, addr machine.Addr) error {
	if addr < 0x2000 || addr+machine.Addr(len(p)) > 0x3000 {
		return fmt.Errorf("%v is not mapped", addr)
	}
	for i := range p {
		p[i] = 5
	}
	return nil
}

// moment returns an exit of the toy's method.
func moment() *protocheck.Moment {
	at, zero, one := int64(3), int64(0), int64(1)
	return &protocheck.Moment{Memory: page{}, Maps: []machine.Mapping{{Start: 0x2000, End: 0x3000, Read: true, Write: true}},
		Symbol: func(name string) (machine.Addr, uint64, bool) { return 0x2008, 8, name == "counter" },
		Request: &protocol.Resume{Steps: 1e9, Tail: 20, Objects: []protocol.Object{{ID: 1, Class: "Box", Fields: []protocol.Field{}}},
			Frames: []protocol.Frame{{Method: "Toy.add", Position: &at, Resume: "reexecute", Locals: []protocol.Value{{Index: &zero, Object: &one}},
				Stack: []protocol.Value{{Index: &zero, Type: "i32", Text: "7", Bits: "0x7"}}}}}}
}

// toyWith returns the options for checking the toy interpreter with a fault.
func toyWith(t *testing.T, fault string) protocheck.Options {
	t.Helper()
	livetest.NeedsTools(t)
	self, err := os.Executable()
	require.NoError(t, err)
	return protocheck.Options{Command: faultVariable + "=" + fault + " exec " + self, Timeout: livetest.Patience, Errors: os.Stderr, Moment: moment(),
		Hello: protocol.Hello{Arch: "amd64", Order: "little", Pointer: 8, Target: "core"}}
}

func silent(*protocheck.Result) error { return nil }

// TestEachFaultBreaksItsCheck requires that each fault of an interpreter violates the check for it, and no other.
func TestEachFaultBreaksItsCheck(t *testing.T) {
	livetest.NeedsTools(t)
	t.Parallel()
	for fault, want := range map[string]map[string]string{
		"":                      {},
		"nameless":              {"initialize": "its answer has no name, which reports need"},
		"knows-all":             {"unknown-method": "it has answered reframe.check with a result"},
		"wrong-error":           {"unknown-method": "it has answered reframe.check with the error -32000: what?"},
		"answers-notifications": {"notification": `an answer: its id is "null"; ids of reframe are numbers`},
		"runs-anything":         {"nobody": "it reports that it returned nothing"},
		"dies-of-nothing":       {"no-frames": "its answer to resume (id 5): it has ended (exit status 9)"},
		"keeps":                 {"again": "it returned i64 0x88be; the first time it returned i64 0x88bd"},
		"stores-otherwise":      {"again": "it stored another value at 0x2000 than the first time"},
		"starts-badly":          {"first": "it returned i64 0x88be; the first time it returned i64 0x88bd"},
		"strict":                {"unknown-members": "it says unsupported: what is reframe.check?; the first time it returned i64 0x88bd"},
		"by-text": {"order": "it says unsupported: these are no frames; the first time it returned i64 0x88bd", "unknown-members": "it says unsupported: these are no frames; the first time it returned i64 0x88bd",
			"step": "before the first instruction: it says unsupported: these are no frames; the first time it returned i64 0x88bd"},
		"endless":           {"steps": "one was requested, and it returned i64 0x88bd after 5000"},
		"tells-all":         {"tail": "3 last instructions were requested, and its answer has 4"},
		"guesses":           {"unreadable": "it reports that it returned i64 0x88b8"},
		"writes-blindly":    {"unwritable": "it reports that it returned i64 0x88bd"},
		"allocates-blindly": {"no-memory": "it reports that it returned i64 0x88bd"},
		"needs-symbols":     {"no-symbols": "its answer to resume (id 11): it has ended (exit status 6)"},
		"any-stack":         {"stack-short": "it was accepted: it returned i64 0x88bd", "stack-long": "it was accepted: it returned i64 0x88bd"},
		"any-position":      {"position": "it was accepted: it returned i64 0x88bd"},
		"any-object":        {"no-object": "it was accepted: it returned i64 0x88bd"},
		"stops-late":        {"step": "its answer to resume (id 16): it stopped after 2 instructions, not after 1"},
		"stops-once":        {"step": "its answer to resume (id 59): it stopped after 1 instructions, not after 2"},
		"runs-first":        {"step": "its answer to resume (id 57): it stopped after 1 instructions, not after 0"},
		"loses":             {"step": "by single instructions: it returned i64 0x505050505058ca5; the first time it returned i64 0x88bd"},
		"stops-deep":        {"next": "its answer to resume (id 80): it stopped in 2 frames, not in up to 1"},
		"spells":            {"spelling": `"Returned" is not a member of result; did you mean "returned"?`},
		"stays":             {"end": "it had not ended after two seconds, and was killed"},
	} {
		t.Run(fault, func(t *testing.T) {
			t.Parallel()
			report, err := protocheck.Run(t.Context(), toyWith(t, fault), silent)
			require.NoError(t, err)
			broken := map[string]string{}
			const early = "it came before a request"
			for _, r := range report.Checks {
				require.NotEqual(t, protocheck.Not, r.Status, "%s: %s", r.Check, r.Why)
				if r.Status == protocheck.Broken {
					if broken[r.Check] = r.Why; r.Check == "notification" && strings.HasSuffix(r.Why, early) { // the answer may arrive before the next request
						broken[r.Check] = want[r.Check]
					}
				}
			}
			require.Equal(t, want, broken)
			require.Equal(t, len(want), report.Broken)
		})
	}
}

// TestWhatIsNotTried requires that without an exit only checks that do not need an exit run, and that an interpreter that does not answer initialize
// gets no other request.
func TestWhatIsNotTried(t *testing.T) {
	livetest.NeedsTools(t)
	t.Parallel()
	o := toyWith(t, "")
	o.Moment = nil
	report, err := protocheck.Run(t.Context(), o, silent)
	require.NoError(t, err)
	var tried []string
	for _, r := range report.Checks {
		if r.Status == protocheck.Not {
			require.Equal(t, "no exit was given: PID or CORE, and --layout unless the target contains one", r.Why)
			continue
		}
		require.Equal(t, protocheck.Kept, r.Status, "%s: %s", r.Check, r.Why)
		tried = append(tried, r.Check)
	}
	require.Equal(t, []string{"initialize", "unknown-method", "notification", "nobody", "no-frames", "spelling", "end"}, tried)
	require.Nil(t, report.Exit)

	o = toyWith(t, "")
	o.Command = "exit 3"
	report, err = protocheck.Run(t.Context(), o, silent)
	require.NoError(t, err)
	require.Equal(t, protocheck.Result{Check: "initialize", What: "it answers initialize with its protocol version and a name", Status: protocheck.Broken,
		Why: "its answer to initialize (id 1): it has ended (exit status 3)"}, report.Checks[0])
	for _, r := range report.Checks[1:] {
		require.Equal(t, "it ended during initialize", r.Why, r.Check)
	}

	o = toyWith(t, "any-position")
	o.Moment.Request.Frames[0].Method = "Toy.subtract"
	report, err = protocheck.Run(t.Context(), o, silent)
	require.NoError(t, err)
	require.Equal(t, 1, report.Broken)
	for _, r := range report.Checks {
		if r.Check == "exit" {
			require.Equal(t, "unsupported: no such method", r.Why)
		}
	}
}

// TestExitIsCounted requires that the report counts the steps, requests, memory accesses and allocated bytes of the exit.
func TestExitIsCounted(t *testing.T) {
	livetest.NeedsTools(t)
	t.Parallel()
	report, err := protocheck.Run(t.Context(), toyWith(t, ""), silent)
	require.NoError(t, err)
	require.Equal(t, &protocheck.Exit{Frames: 1, Objects: 1, Outcome: "returned i64 0x88bd", Steps: 5000, Requests: 5, Ranges: 1, Writes: 1, Allocated: 16}, report.Exit)
}

// TestMembersAreTheSchemas requires that the known member names are those of the schema.
func TestMembersAreTheSchemas(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../../doc/user/schema/messages.schema.json")
	require.NoError(t, err)
	type object struct {
		Properties map[string]object
		Items      *object
	}
	var schema struct {
		Defs map[string]object `json:"$defs"`
	}
	require.NoError(t, json.Unmarshal(text, &schema))
	want := map[string]map[string]bool{}
	add := func(where string, of object) {
		if want[where] == nil {
			want[where] = map[string]bool{}
		}
		for name := range of.Properties {
			want[where][name] = true
		}
	}
	add("", schema.Defs["request"])
	add("", schema.Defs["answer"])
	add("result", schema.Defs["initialize.result"])
	add("result", schema.Defs["resume.result"])
	add("returned", schema.Defs["native"])
	add("threw", schema.Defs["resume.result"].Properties["threw"])
	add("error", schema.Defs["error"])
	add("stopped", schema.Defs["resume.result"].Properties["stopped"])
	add("frames", schema.Defs["frame"])
	add("monitors", *schema.Defs["frame"].Properties["monitors"].Items)
	for _, where := range []string{"locals", "stack", "owner"} {
		add(where, schema.Defs["value"])
	}
	add("objects", schema.Defs["object"])
	add("fields", *schema.Defs["object"].Properties["fields"].Items)
	for name, of := range schema.Defs {
		if method, is := strings.CutSuffix(name, ".params"); is && method != "initialize" && method != "resume" {
			add("params", of)
			if ranges, is := of.Properties["ranges"]; is {
				add("ranges", *ranges.Items)
			}
		}
	}
	got := map[string]map[string]bool{}
	for where, names := range protocheck.Members {
		got[where] = map[string]bool{}
		for _, name := range names {
			got[where][name] = true
		}
	}
	require.Equal(t, want, got)
}

// TestEnds requires that the toy interpreter ends when its caller closes its input.
func TestEnds(t *testing.T) {
	livetest.NeedsTools(t)
	t.Parallel()
	enough := errors.New("enough")
	_, err := protocheck.Run(t.Context(), toyWith(t, ""), func(*protocheck.Result) error { return enough })
	require.ErrorIs(t, err, enough)
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(enough)
	_, err = protocheck.Run(ctx, toyWith(t, ""), silent)
	require.ErrorIs(t, err, enough)
}
