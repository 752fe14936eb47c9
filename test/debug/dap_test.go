package debug_test

import (
	"encoding/base64"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-dap"
	"github.com/stretchr/testify/require"

	"example.com/reframe/test/clitest"
	"example.com/reframe/test/livetest"
)

// launchNull returns the configuration that launches null.ll. It calls @load with 0, 1, 2 and 3; each call has an exit at record 81.
func launchNull(t *testing.T) map[string]any {
	host := livetest.ObjectHostCommand(t, livetest.PICObject(t, 19, "null.ll", "-O2"), livetest.ObjectHostOptions{Rounds: 4})
	return map[string]any{"program": host[0], "args": host[1:], "ir": livetest.IR(t, 19, "null.ll")}
}

// TestDAPLaunch requires that a launched program stops at each kind of breakpoint, and continues to its end.
func TestDAPLaunch(t *testing.T) {
	e := edits(t)
	configuration := launchNull(t)
	ir := configuration["ir"].(string)
	r := e.begin("launch", configuration)
	require.True(t, r.Body.SupportsStepBack)
	lines := map[string]any{"source": map[string]any{"path": ir}, "breakpoints": []map[string]any{{"line": 8, "condition": "%n & 1 == 1"}, {"line": 12}, {"line": 1}}}
	set := ask[*dap.SetBreakpointsResponse](e, "setBreakpoints", lines).Body.Breakpoints
	require.Len(t, set, 3)
	require.True(t, set[0].Verified, set[0].Message)
	require.Equal(t, "native code and the interpreter stop at this stackmap", set[0].Message)
	require.True(t, set[1].Verified)
	require.Contains(t, set[1].Message, "only the interpreter stops here")
	require.False(t, set[2].Verified)
	require.Contains(t, set[2].Message, "is not in a function")
	ask[*dap.SetExceptionBreakpointsResponse](e, "setExceptionBreakpoints", map[string]any{"filters": []string{}})
	ask[*dap.ConfigurationDoneResponse](e, "configurationDone", nil)

	for _, n := range []string{"1", "3"} {
		at := e.stopped("breakpoint")
		require.Equal(t, []int{set[0].Id}, at.HitBreakpointIds)
		frames := e.stack(at.ThreadId)
		load := lineOf(t, frames, "load")
		require.Equal(t, frames[0], load)
		require.Equal(t, ir, load.Source.Path)
		require.Equal(t, 8, load.Line)
		require.Equal(t, n, e.evaluated(load.Id, "%n"))
		require.Equal(t, "subtle", lineOf(t, frames, "work").PresentationHint)
		values := e.values(e.scopes(load.Id)["Values"])
		require.Equal(t, n, values["%n"].Value)
		require.Equal(t, "i64", values["%n"].Type)
		ask[*dap.ContinueResponse](e, "continue", map[string]any{"threadId": at.ThreadId})
	}
	require.Zero(t, event[*dap.ExitedEvent](e).Body.ExitCode)
	event[*dap.TerminatedEvent](e)
	require.Contains(t, e.output["stdout"], "sum")
	e.refused("stackTrace", map[string]any{"threadId": 1}, "the process has ended")
	e.disconnect()
}

// lineWith returns the number of the first line of a file that contains text.
func lineWith(t *testing.T, file, text string) int {
	t.Helper()
	all, err := os.ReadFile(file)
	require.NoError(t, err)
	before, _, found := strings.Cut(string(all), text)
	require.True(t, found, text)
	return strings.Count(before, "\n") + 1
}

// attachSum attaches to deoptimize.ll, stopped at an exit of the loop in @sum with %i = 26 and %acc1 = 5525, the sum of the squares of the smaller
// numbers.
func attachSum(t *testing.T) (*editor, *livetest.Process, dap.StoppedEventBody) {
	t.Helper()
	p := livetest.Lli(t, 19, "deoptimize.ll", "mcjit")
	e := edits(t)
	e.begin("attach", map[string]any{"pid": p.PID, "ir": []string{p.IR}, "layout": clitest.DeoptimizeLayout(t), "noSelfDescription": true})
	ask[*dap.ConfigurationDoneResponse](e, "configurationDone", nil)
	return e, p, e.stopped("entry")
}

// TestDAPAttach requires that, after attaching to a process at its exit, the interpreter steps in both directions and the process stays unchanged.
func TestDAPAttach(t *testing.T) {
	t.Parallel()
	e, p, at := attachSum(t)
	thread := map[string]any{"threadId": at.ThreadId}
	require.Equal(t, p.PID, at.ThreadId)
	require.Equal(t, []dap.Thread{{Id: p.PID, Name: "lli"}}, fixed(ask[*dap.ThreadsResponse](e, "threads", nil).Body.Threads))
	frames := e.stack(at.ThreadId)
	exit := lineOf(t, frames, "sum_opt")
	require.Contains(t, exit.Name, "(deoptimize, in-call)")
	require.Equal(t, lineWith(t, p.IR, "%safepoint_token = "), exit.Line)
	some := ask[*dap.StackTraceResponse](e, "stackTrace", map[string]any{"threadId": at.ThreadId, "startFrame": 1, "levels": 2}).Body
	require.Equal(t, frames[1:3], some.StackFrames)
	require.Equal(t, len(frames), some.TotalFrames)

	scopes := e.scopes(exit.Id)
	values := e.values(scopes["Values"])
	require.Equal(t, "26", values["%i"].Value)
	require.Equal(t, "5525", values["%acc"].Value)
	record := e.values(scopes["Record"])
	require.Equal(t, "deoptimize", record["site"].Value)
	require.Equal(t, "@sum, block %loop", record["resumes in"].Value)
	registers := e.values(scopes["Registers"])
	require.Regexp(t, `^0x[0-9a-f]+$`, registers["rsp"].Value)
	require.Contains(t, registers["rax"].Value, "unavailable", "what a call may change")
	require.Equal(t, "11050", e.evaluated(exit.Id, "acc * 2"))
	e.refused("evaluate", map[string]any{"expression": "nothing + 1", "frameId": exit.Id}, "there is no nothing")
	e.refused("stepBack", thread, "has not run since the exit")
	e.refused("exceptionInfo", thread, "an exception filter")

	ask[*dap.NextResponse](e, "next", thread) // %sq = mul i64 %i, %i
	e.stopped("step")
	e.refused("scopes", map[string]any{"frameId": exit.Id}, "from an earlier stop")
	top := e.stack(at.ThreadId)[0]
	require.Equal(t, "@sum (interpreter)", top.Name)
	require.Equal(t, lineWith(t, p.IR, "define i64 @sum(")+8, top.Line) // %acc1
	require.Equal(t, "676", e.evaluated(top.Id, "sq"))
	ask[*dap.StepInResponse](e, "stepIn", map[string]any{"threadId": at.ThreadId, "granularity": "instruction"})
	e.stopped("step")
	top = e.stack(at.ThreadId)[0]
	require.Equal(t, "6201", e.evaluated(top.Id, "%acc1"))
	require.Equal(t, "2", e.values(e.scopes(top.Id)["Run"])["instructions since the exit"].Value)
	ask[*dap.StepBackResponse](e, "stepBack", thread)
	e.stopped("step")
	require.Contains(t, e.values(e.scopes(e.stack(at.ThreadId)[0].Id)["Values"])["%acc1"].Value, "the run has not reached it")

	// Set a watchpoint on a value, and a breakpoint with a hit count.
	info := ask[*dap.DataBreakpointInfoResponse](e, "dataBreakpointInfo", map[string]any{"name": "%acc1", "frameId": e.stack(at.ThreadId)[0].Id}).Body
	require.Equal(t, "@sum:%acc1", info.DataId)
	watched := ask[*dap.SetDataBreakpointsResponse](e, "setDataBreakpoints", map[string]any{"breakpoints": []map[string]any{{"dataId": info.DataId, "condition": "%acc1 > 7000"}}}).Body.Breakpoints
	require.True(t, watched[0].Verified, watched[0].Message)
	ask[*dap.EvaluateResponse](e, "evaluate", map[string]any{"expression": "run", "context": "repl"})
	changed := e.stopped("data breakpoint")
	require.Equal(t, "%acc1 of @sum became 7714", changed.Description) // 5525 + 26² + 27² + 28²
	require.Equal(t, []int{watched[0].Id}, changed.HitBreakpointIds)
	ask[*dap.SetDataBreakpointsResponse](e, "setDataBreakpoints", map[string]any{"breakpoints": []any{}})
	mul := lineWith(t, p.IR, "define i64 @sum(") + 7
	set := ask[*dap.SetBreakpointsResponse](e, "setBreakpoints", map[string]any{"source": map[string]any{"path": p.IR}, "breakpoints": []map[string]any{{"line": mul, "condition": "%i >= 100", "hitCondition": "2"}, {"line": mul, "hitCondition": "% 50", "logMessage": "i is {%i}, {no}"}}}).Body.Breakpoints
	ask[*dap.EvaluateResponse](e, "evaluate", map[string]any{"expression": "run", "context": "repl"})
	require.Equal(t, []int{set[0].Id}, e.stopped("breakpoint").HitBreakpointIds)
	top = e.stack(at.ThreadId)[0]
	require.Equal(t, mul, top.Line)
	require.Equal(t, "101", e.evaluated(top.Id, "%i"))
	require.Contains(t, e.output["console"], "i is 78, {") // 29 is the first
	ask[*dap.ReverseContinueResponse](e, "reverseContinue", thread)
	e.stopped("step")
	require.Equal(t, "100", e.evaluated(e.stack(at.ThreadId)[0].Id, "%i"), "the place before")

	// Set another value, and continue to the end.
	targets := ask[*dap.GotoTargetsResponse](e, "gotoTargets", map[string]any{"source": map[string]any{"path": p.IR}, "line": mul}).Body.Targets
	require.Len(t, targets, 1)
	ask[*dap.GotoResponse](e, "goto", map[string]any{"threadId": at.ThreadId, "targetId": targets[0].Id})
	e.stopped("goto")
	top = e.stack(at.ThreadId)[0]
	require.Equal(t, "26", e.evaluated(top.Id, "%i"))
	reply := ask[*dap.SetVariableResponse](e, "setVariable", map[string]any{"variablesReference": e.scopes(top.Id)["Values"], "name": "%i", "value": "999"})
	require.Equal(t, "999", reply.Body.Value)
	e.stopped("restart")
	top = e.stack(at.ThreadId)[0]
	require.Equal(t, "999", e.evaluated(top.Id, "%i"))
	ask[*dap.StepOutResponse](e, "stepOut", thread)
	require.Equal(t, "the interpreter has returned i64 1003526", e.stopped("step").Text, "5525 and the square of 999")
	require.Contains(t, e.output["console"], "the interpreter has returned i64 1003526, after 6 instructions")
	require.True(t, strings.HasPrefix(e.stack(at.ThreadId)[0].Name, "main"), "the caller")
	e.refused("restartFrame", map[string]any{"frameId": 12345678}, "not found")
	ask[*dap.RestartFrameResponse](e, "restartFrame", map[string]any{"frameId": e.stack(at.ThreadId)[0].Id})
	e.stopped("restart")

	// Continue the process, pause it, and detach.
	ask[*dap.SetBreakpointsResponse](e, "setBreakpoints", map[string]any{"source": map[string]any{"path": p.IR}, "breakpoints": []any{}})
	ask[*dap.ContinueResponse](e, "continue", thread)
	e.refused("stackTrace", thread, "the process is running: pause it first")
	ask[*dap.SetFunctionBreakpointsResponse](e, "setFunctionBreakpoints", map[string]any{"breakpoints": []map[string]any{{"name": "nobody_calls_this"}}})
	ask[*dap.PauseResponse](e, "pause", thread)
	e.stopped("pause")
	values = e.values(e.scopes(lineOf(t, e.stack(at.ThreadId), "sum_opt").Id)["Values"])
	require.Equal(t, "26", values["%i"].Value, "of another moment")
	set2 := ask[*dap.SetVariableResponse](e, "setVariable", map[string]any{"variablesReference": e.scopes(lineOf(t, e.stack(at.ThreadId), "sum_opt").Id)["Values"], "name": "%i", "value": "27"})
	require.Equal(t, "27", set2.Body.Value)
	require.Equal(t, []dap.InvalidatedAreas{"variables"}, event[*dap.InvalidatedEvent](e).Body.Areas)
	id := lineOf(t, e.stack(at.ThreadId), "sum_opt").Id
	require.Equal(t, "27", e.evaluated(id, "%i"))
	ask[*dap.SetExpressionResponse](e, "setExpression", map[string]any{"expression": "%i", "value": "28", "frameId": id})
	require.Equal(t, "28", e.evaluated(id, "%i"))
	e.refused("setVariable", map[string]any{"variablesReference": e.scopes(id)["Registers"], "name": "rsp", "value": "1"}, "cannot be set")
	e.refused("terminate", nil, "cannot be terminated")
	e.disconnect()
	clitest.RequireUnharmed(t, p)
}

// fixed removes the suffix that a thread adds to its program's name.
func fixed(list []dap.Thread) (out []dap.Thread) {
	for _, t := range list {
		t.Name, _, _ = strings.Cut(t.Name, "-")
		out = append(out, t)
	}
	return out
}

// TestDAPMemory requires that memory and code are read up to the first unavailable byte.
func TestDAPMemory(t *testing.T) {
	t.Parallel()
	e, p, at := attachSum(t)
	exit := lineOf(t, e.stack(at.ThreadId), "sum_opt")
	code := exit.InstructionPointerReference
	r := ask[*dap.ReadMemoryResponse](e, "readMemory", map[string]any{"memoryReference": code, "offset": -16, "count": 64}).Body
	raw, err := base64.StdEncoding.DecodeString(r.Data)
	require.NoError(t, err)
	require.Len(t, raw, 64)
	pc, err := strconv.ParseUint(code, 0, 64)
	require.NoError(t, err)
	require.Equal(t, fmt.Sprintf("%#x", pc-16), r.Address)
	memory, err := os.Open(fmt.Sprintf("/proc/%d/mem", p.PID))
	require.NoError(t, err)
	defer memory.Close()
	want := make([]byte, 64)
	_, err = memory.ReadAt(want, int64(pc-16))
	require.NoError(t, err)
	require.Equal(t, want, raw)
	r = ask[*dap.ReadMemoryResponse](e, "readMemory", map[string]any{"memoryReference": "0x10", "count": 8}).Body
	require.Empty(t, r.Data)
	require.Equal(t, 8, r.UnreadableBytes)
	end := mappingEnd(t, p.PID, pc)
	r = ask[*dap.ReadMemoryResponse](e, "readMemory", map[string]any{"memoryReference": fmt.Sprintf("%#x", end-6), "count": 1 << 16}).Body
	raw, err = base64.StdEncoding.DecodeString(r.Data)
	require.NoError(t, err)
	require.GreaterOrEqual(t, len(raw), 6)
	require.Equal(t, 1<<16, len(raw)+r.UnreadableBytes)
	e.refused("readMemory", map[string]any{"memoryReference": "rsp", "count": 8}, "an address")
	e.refused("readMemory", map[string]any{"memoryReference": "0x10", "count": int64(1) << 40}, "bytes")

	around := ask[*dap.DisassembleResponse](e, "disassemble", map[string]any{"memoryReference": code, "instructionOffset": -3, "instructionCount": 6}).Body.Instructions
	require.Len(t, around, 6)
	require.Equal(t, code, around[3].Address)
	require.Contains(t, around[2].Instruction, "call")
	require.Contains(t, around[3].Instruction, "returns here")
	behind := ask[*dap.DisassembleResponse](e, "disassemble", map[string]any{"memoryReference": code, "instructionOffset": 1, "instructionCount": 2}).Body.Instructions
	require.Equal(t, around[4:6], behind)
	far := ask[*dap.DisassembleResponse](e, "disassemble", map[string]any{"memoryReference": code, "instructionOffset": -1000, "instructionCount": 2000}).Body.Instructions
	require.Len(t, far, 2000)
	require.Equal(t, "(not known)", far[0].Instruction)
	require.Equal(t, code, far[1000].Address)
	for n := 1; n < len(far); n++ {
		a, err := strconv.ParseUint(far[n-1].Address, 0, 64)
		require.NoError(t, err)
		b, err := strconv.ParseUint(far[n].Address, 0, 64)
		require.NoError(t, err)
		require.Less(t, a, b)
	}
	e.refused("disassemble", map[string]any{"memoryReference": "0x10", "instructionCount": 1}, "cannot be read")
	e.refused("disassemble", map[string]any{"memoryReference": code, "instructionCount": 1 << 30}, "at most")
	e.disconnect()
	clitest.RequireUnharmed(t, p)
}

// mappingEnd returns the end of the mapping that contains an address.
func mappingEnd(t *testing.T, pid int, addr uint64) uint64 {
	t.Helper()
	maps, err := os.ReadFile(fmt.Sprintf("/proc/%d/maps", pid))
	require.NoError(t, err)
	for line := range strings.Lines(string(maps)) {
		var from, to uint64
		_, err := fmt.Sscanf(line, "%x-%x", &from, &to)
		require.NoError(t, err)
		if from <= addr && addr < to {
			return to
		}
	}
	require.Fail(t, "no mapping")
	return 0
}

// TestDAPVirtualMachine requires that the stack trace lists frames of the virtual machine after their JIT frame. Values, objects and locks of these
// frames have children and can be set.
func TestDAPVirtualMachine(t *testing.T) {
	t.Parallel()
	p := livetest.Lli(t, 19, "vmsimple.ll", "orc")
	e := edits(t)
	e.begin("attach", map[string]any{"processId": clitest.PID(p), "ir": p.IR, "layout": "simple"})
	ask[*dap.ConfigurationDoneResponse](e, "configurationDone", nil)
	at := e.stopped("entry")
	frames := e.stack(at.ThreadId)
	k := slices.IndexFunc(frames, func(f dap.StackFrame) bool { return strings.HasPrefix(f.Name, "compiled") })
	require.Equal(t, "Foo.bar @17 (reexecute)", frames[k+1].Name)
	require.Equal(t, "Foo.main @9 (in-call)", frames[k+2].Name)
	require.True(t, strings.HasPrefix(frames[k+3].Name, "main"), frames[k+3].Name)
	require.Nil(t, frames[k+1].Source)

	scopes := e.scopes(frames[k].Id)
	for _, name := range []string{"Values", "VM locals", "Operand stack", "Monitors", "Objects", "Registers", "Record"} {
		require.Contains(t, scopes, name)
	}
	bar := e.scopes(frames[k+1].Id)
	locals := e.values(bar["VM locals"])
	require.Equal(t, locals["local[0]"].Value, e.values(scopes["VM locals"])["local[0]"].Value)
	objects := e.values(scopes["Objects"])
	point := objects["object[4]"]
	require.Contains(t, point.Value, "Point")
	fields := e.values(point.VariablesReference)
	require.Len(t, fields, 2)
	self := fields["16"]
	require.Contains(t, self.Value, "object[4]", "the object itself: %v", fields)
	require.Equal(t, len(fields), len(e.values(self.VariablesReference)))
	require.Contains(t, e.values(scopes["Monitors"])["monitor[0]"].Value, "left out")
	e.refused("setVariable", map[string]any{"variablesReference": scopes["Objects"], "name": "object[4]", "value": "1"}, "cannot be set")
	main := e.scopes(frames[k+2].Id)
	before := e.values(main["VM locals"])["local[0]"]
	require.Equal(t, "caller[1].local[0]", before.EvaluateName)
	r := ask[*dap.SetVariableResponse](e, "setVariable", map[string]any{"variablesReference": main["VM locals"], "name": "local[0]", "value": "17"})
	require.Equal(t, "17", r.Body.Value)
	require.Equal(t, "17", e.values(main["VM locals"])["local[0]"].Value)
	require.Equal(t, "17", e.evaluated(frames[k].Id, "caller[1].local[0]"))
	e.disconnect()
	clitest.RequireUnharmed(t, p)
}

// TestDAPVirtualMachineSource requires that a frame of the virtual machine has the source position that its layout gives.
func TestDAPVirtualMachineSource(t *testing.T) {
	t.Parallel()
	p := clitest.StartCalling(t)
	star, err := os.ReadFile(livetest.Testdata(t, "programs", "vmframes.star"))
	require.NoError(t, err)
	here := livetest.Testdata(t, "programs", "vmframes.ll")
	info := fmt.Sprintf("\ndef info(method, position):\n    return {\"file\": %q, \"line\": str(position + 100)} if position > 4 else {\"source\": \"Main.java\", \"line\": \"7\"}\n", here)
	e := edits(t)
	e.begin("attach", map[string]any{"pid": p.PID, "layout": clitest.TempFile(t, "vm.star", string(star)+info)})
	ask[*dap.ConfigurationDoneResponse](e, "configurationDone", nil)
	frames := e.stack(e.stopped("entry").ThreadId)
	norm, main := lineOf(t, frames, "Point.norm @17"), lineOf(t, frames, "main @4")
	require.Equal(t, &dap.Source{Name: "vmframes.ll", Path: here}, norm.Source)
	require.Equal(t, 117, norm.Line)
	require.Equal(t, &dap.Source{Name: "Main.java", Origin: "not here: Main.java", PresentationHint: "deemphasize"}, main.Source)
	require.Equal(t, 7, main.Line)
	e.disconnect()
	clitest.RequireUnharmed(t, p)
}
