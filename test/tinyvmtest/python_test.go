package tinyvmtest

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/reframe/test/livetest"
)

// TestPython requires that the interpreter in Python behaves like the plain interpreter in C++.
func TestPython(t *testing.T) {
	livetest.Slow(t)
	command, binary := InPython(t), Binary(t, 19)
	files := []string{livetest.Testdata(t, "..", "examples", "tinyvm", "points.tvm")}
	for seed := range uint64(40) {
		files = append(files, File(t, seed))
	}
	stopped := 0
	for _, file := range files {
		want, got := Run(t, binary, "--interpret", file), run(t, command, file)
		require.Equal(t, want.Output, got.Output, "%s: %s", filepath.Base(file), got.Errors)
		require.Equal(t, want.Status, got.Status, filepath.Base(file))
		if got.Status != 0 {
			stopped++
		}
	}
	require.Positive(t, stopped)
	require.Less(t, stopped, len(files)/2)
}

// served is an interpreter that gets messages of doc/user/protocol.md. Its requests are answered from a simulated moment of a target.
type served struct {
	in    io.WriteCloser
	lines chan string // lines are read ahead, because the interpreter may send many before it reads an answer
	ids   int

	words   map[uint64]uint64 // words of memory by address; other bytes of these pages are 0, and no other pages exist
	pages   map[uint64]bool
	symbols map[string]uint64
	next    uint64 // the next allocated address

	written map[uint64]uint64
	output  string
	asked   []string // methods that the interpreter requested
}

// serveBy starts an interpreter, which is killed when the test ends.
func serveBy(t *testing.T, command []string) *served {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), livetest.Patience)
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	s := &served{}
	var err error
	s.in, err = cmd.StdinPipe()
	require.NoError(t, err)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	var errors bytes.Buffer
	cmd.Stderr = &errors
	require.NoError(t, cmd.Start())
	s.lines = make(chan string, 1<<16)
	go func() {
		defer close(s.lines)
		lines := bufio.NewScanner(out)
		lines.Buffer(nil, 16<<20)
		for lines.Scan() {
			s.lines <- lines.Text()
		}
	}()
	t.Cleanup(func() {
		defer cancel()
		require.NoError(t, s.in.Close())
		for line := range s.lines {
			assert.Fail(t, "it says more: "+line)
		}
		err := cmd.Wait()
		t.Logf("%s", errors.Bytes())
		require.NoError(t, err)
	})
	return s
}

// moment replaces the simulated memory and symbols.
func (s *served) moment(words map[uint64]uint64, symbols map[string]uint64) {
	s.words, s.symbols, s.next = words, symbols, 0x5f0000000000
	s.pages = map[uint64]bool{}
	for at := range words {
		s.pages[at>>12] = true
	}
	s.written, s.output, s.asked = map[uint64]uint64{}, "", nil
}

// say sends a line, answers the interpreter's requests until it answers the line, and returns that answer.
func (s *served) say(t *testing.T, line string) string {
	t.Helper()
	_, err := io.WriteString(s.in, line+"\n")
	require.NoError(t, err)
	for line := range s.lines {
		var m struct {
			ID     *int
			Method string
			Params json.RawMessage
		}
		require.NoError(t, json.Unmarshal([]byte(line), &m), line)
		if m.Method == "" {
			return line
		}
		s.asked = append(s.asked, m.Method)
		result := s.do(t, m.Method, m.Params)
		if m.Method == "output" {
			continue
		}
		require.NotNil(t, m.ID, m.Method)
		require.Equal(t, s.ids+1, *m.ID)
		s.ids++
		text, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": m.ID, "result": result})
		require.NoError(t, err)
		_, err = s.in.Write(append(text, '\n'))
		require.NoError(t, err)
	}
	require.Fail(t, "it has ended")
	return ""
}

// resume sends a resume request, and returns the result.
func (s *served) resume(t *testing.T, params string) string {
	t.Helper()
	var m struct{ Result, Error json.RawMessage }
	require.NoError(t, json.Unmarshal([]byte(s.say(t, `{"jsonrpc":"2.0","id":7,"method":"resume","params":`+params+`}`)), &m))
	require.Nil(t, m.Error)
	return string(m.Result)
}

func (s *served) do(t *testing.T, method string, params json.RawMessage) any {
	t.Helper()
	var p struct {
		Ranges []struct {
			At, Data string
			Size     int
		}
		Size  uint64
		Names []string
		Text  string
	}
	require.NoError(t, json.Unmarshal(params, &p))
	results := []any{}
	switch method {
	case "memory.read":
		for _, r := range p.Ranges {
			at, err := strconv.ParseUint(r.At, 0, 64)
			require.NoError(t, err)
			results = append(results, s.read(at, r.Size))
		}
	case "memory.write":
		for _, r := range p.Ranges {
			at, err := strconv.ParseUint(r.At, 0, 64)
			require.NoError(t, err)
			data, err := hex.DecodeString(r.Data)
			require.NoError(t, err)
			for i, b := range data {
				word, shift := (at+uint64(i))&^7, 8*((at+uint64(i))&7)
				if _, ok := s.written[word]; !ok {
					s.written[word] = s.words[word]
				}
				s.written[word] = s.written[word]&^(0xff<<shift) | uint64(b)<<shift
			}
		}
		return struct{}{}
	case "memory.allocate":
		at := s.next
		s.next += (p.Size + 15) &^ 15
		return map[string]string{"at": fmt.Sprintf("%#x", at)}
	case "symbol":
		for _, name := range p.Names {
			if at, ok := s.symbols[name]; ok {
				results = append(results, map[string]string{"at": fmt.Sprintf("%#x", at)})
			} else {
				results = append(results, nil)
			}
		}
	case "output":
		s.output += p.Text
	default:
		require.Fail(t, "it asks for "+method)
	}
	return results
}

func (s *served) read(at uint64, size int) any {
	data := make([]byte, size)
	for i := range data {
		a := at + uint64(i)
		if !s.pages[a>>12] {
			return map[string]string{"error": fmt.Sprintf("%#x is not mapped", a)}
		}
		data[i] = byte(s.words[a&^7] >> (8 * (a & 7)))
	}
	return map[string]string{"data": hex.EncodeToString(data)}
}

// servedProgram is served.tvm. tinyvm stores its names in 16 bytes each: Point, x, y, Main.main, …
const servedProgram = `
class Point x y
method Main.main 0 1
  new Point        ; 0
  set 0
  get 0
  int 5
  putfield y
  get 0            ; 5
  print
  int 2
  call Main.f
  get 0
  getfield y       ; 10
  add
  return
method Main.f 1 1
  get 0            ; 0
  int 3
  mul
  return
method Main.hold 1 2
  get 0            ; 0
  enter
  get 0
  get 0
  getfield x
  putfield x       ; 5
  exit
  double 0
  double -0.0
  div
  return           ; 10
method Main.down 1 1
down:
  get 0            ; 0
  if down
  get 0
  return
`

const (
	servedFuel, servedStopped, servedWhy = 0x404000, 0x404008, 0x404040
	servedPoint                          = 0x100000001000 // an object
)

func servedMoment() (words map[uint64]uint64, symbols map[string]uint64) {
	return map[uint64]uint64{
		servedFuel: 2, servedStopped: 0,
		0x100000000000: 0x746e696f50, // "Point"
		servedPoint:    0x100000000000, servedPoint + 8: 2 << 32, servedPoint + 16: 0xffff000000000007, servedPoint + 24: 0,
		servedPoint + 0x40: 0x100000000010, servedPoint + 0x48: 2 << 32,
		servedPoint + 0x80: 0x100000000000, servedPoint + 0x88: 3 << 32,
	}, map[string]uint64{"tinyvm_fuel": servedFuel, "tinyvm_stopped": servedStopped, "tinyvm_why": servedWhy}
}

// stoppedBy returns the memory that the interpreter writes when it stops the program, with the reason.
func stoppedBy(why string, more map[uint64]uint64) map[uint64]uint64 {
	text := make([]byte, 128)
	copy(text, why)
	words := map[uint64]uint64{servedStopped: 1}
	for at := range uint64(len(text)) / 8 {
		words[servedWhy+8*at] = binary.LittleEndian.Uint64(text[8*at:])
	}
	maps.Copy(words, more)
	return words
}

// standing returns a frame at which the interpreter has stopped. depth is the number of frames below it, or -1 if the frame is not the outermost.
func standing(method string, position int, resume, instruction, locals, stack, monitors string, depth int) string {
	extra := ""
	if depth >= 0 {
		extra = fmt.Sprintf(`,"extra":{"extra 2":{"type":"i64","bits":"%#x","value":"%d"}}`, depth, depth)
	}
	return fmt.Sprintf(`{"method":%q,"position":%d,"resume":%q,"text":%q,"locals":[%s],"stack":[%s],"monitors":[%s]%s}`,
		method, position, resume, instruction, locals, stack, monitors, extra)
}

// servedCases lists requests to an interpreter of servedProgram, with the expected results.
var servedCases = []struct {
	name, params, want string
	written            map[uint64]uint64
	output             string
	words              map[uint64]uint64 // words that differ
}{
	{name: "from the beginning",
		params:  `{"frames":[{"method":"Main.main","position":0,"resume":"reexecute","locals":[],"stack":[]}],"tail":3}`,
		want:    `{"returned":{"type":"i64","bits":"0xffff00000000000b","text":"11"},"steps":17,"tail":["Main.main @ 10 GETFIELD y","Main.main @ 11 ADD","Main.main @ 12 RETURN"],"locked":false}`,
		written: map[uint64]uint64{servedFuel: 1, 0x5f0000000000: 0x100000000000, 0x5f0000000008: 2 << 32, 0x5f0000000018: 0xffff000000000005},
		output:  "a Point\n"},
	{name: "an object that leads to itself, and an int that gets too large",
		params: `{"frames":[
			{"method":"Main.f","position":2,"resume":"reexecute","locals":[{"index":0,"dead":true}],"stack":[{"index":0,"type":"i32","value":"2147483647","bits":"0x7fffffff"},{"index":1,"type":"i32","value":"3","bits":"0x3"}]},
			{"method":"Main.main","position":8,"resume":"in-call","locals":[{"index":0,"object":4}],"stack":[],"extra":{"extra 2":{"type":"i64","value":"0","bits":"0x0"}}}],
			"objects":[{"id":4,"class":"Point","fields":[{"at":16,"object":4},{"at":24,"type":"f64","value":"3.5","bits":"0x400c000000000000"}]}],"tail":2}`,
		want:    `{"returned":{"type":"i64","bits":"0x41f9000000080000","text":"6442450944.5"},"steps":6,"tail":["Main.main @ 11 ADD","Main.main @ 12 RETURN"],"locked":false}`,
		written: map[uint64]uint64{0x5f0000000000: 0x100000000000, 0x5f0000000008: 2 << 32, 0x5f0000000010: 0x5f0000000000, 0x5f0000000018: 0x400d000000000000}},
	{name: "a call that has returned",
		params:  `{"frames":[{"method":"Main.main","position":8,"resume":"in-call","locals":[{"index":0,"type":"ref","bits":"0x100000001000"}],"stack":[]}],"returned":{"type":"i64","bits":"0xffff000000000001"}}`,
		want:    `{"threw":{"text":"error: no numbers in Main.main @ 11"},"returned":{"type":"i64","bits":"0x0"},"steps":3,"tail":[],"locked":false}`,
		written: stoppedBy("error: no numbers in Main.main @ 11", nil)},
	{name: "a call in which the program has stopped",
		params: `{"frames":[{"method":"Main.main","position":8,"resume":"in-call","locals":[],"stack":[]}],"returned":{"type":"i64","bits":"0x0"}}`,
		want:   `{"threw":{"text":"out of fuel"},"returned":{"type":"i64","bits":"0x0"},"steps":0,"tail":[],"locked":false}`,
		words:  stoppedBy("out of fuel", nil)},
	{name: "after an instruction",
		params: `{"frames":[{"method":"Main.f","position":2,"resume":"after","locals":[],"stack":[{"index":0,"type":"ref","bits":"0x100000001000"}]}],"tail":9}`,
		want:   `{"returned":{"type":"i64","bits":"0x100000001000","text":"a Point"},"steps":1,"tail":["Main.f @ 3 RETURN"],"locked":false}`},
	{name: "a monitor that is taken on the way, and a store of the same value",
		params:  `{"frames":[{"method":"Main.hold","position":0,"resume":"reexecute","locals":[{"index":0,"type":"ref","bits":"0x100000001000"}],"stack":[]}]}`,
		want:    `{"returned":{"type":"i64","bits":"0x7ff9000000000000","text":"nan"},"steps":11,"tail":[]}`,
		written: map[uint64]uint64{servedPoint + 8: 2 << 32, servedPoint + 16: 0xffff000000000007}},
	{name: "a monitor that was held",
		params:  `{"frames":[{"method":"Main.hold","position":5,"resume":"after","locals":[],"stack":[],"monitors":[{"owner":{"type":"ref","bits":"0x100000001000"}}]}]}`,
		want:    `{"returned":{"type":"i64","bits":"0x7ff9000000000000","text":"nan"},"steps":5,"tail":[],"locked":false}`,
		words:   map[uint64]uint64{servedPoint + 8: 2<<32 | 1},
		written: map[uint64]uint64{servedPoint + 8: 2 << 32}},
	{name: "a monitor that nobody took",
		params:  `{"frames":[{"method":"Main.hold","position":6,"resume":"reexecute","locals":[],"stack":[],"monitors":[{"owner":{"object":0},"eliminated":true}]}],"objects":[{"id":0,"class":"Point","fields":[{"at":16,"type":"null"},{"at":24,"type":"null"}]}]}`,
		want:    `{"returned":{"type":"i64","bits":"0x7ff9000000000000","text":"nan"},"steps":5,"tail":[]}`,
		written: map[uint64]uint64{0x5f0000000000: 0x100000000000, 0x5f0000000008: 2 << 32, 0x5f0000000010: 0, 0x5f0000000018: 0}},
	{name: "out of fuel",
		params:  `{"frames":[{"method":"Main.down","position":0,"resume":"reexecute","locals":[{"index":0,"type":"i32","bits":"0x1"}],"stack":[]}]}`,
		want:    `{"threw":{"text":"out of fuel"},"returned":{"type":"i64","bits":"0x0"},"steps":6,"tail":[],"locked":false}`,
		written: stoppedBy("out of fuel", map[uint64]uint64{servedFuel: 0})},
	{name: "too deep",
		params:  `{"frames":[{"method":"Main.main","position":8,"resume":"reexecute","locals":[],"stack":[{"index":0,"type":"null"}],"extra":{"extra 2":{"type":"i64","bits":"0xc7"}}}]}`,
		want:    `{"threw":{"text":"error: the stack is full in Main.main @ 8"},"returned":{"type":"i64","bits":"0x0"},"steps":1,"tail":[],"locked":false}`,
		written: stoppedBy("error: the stack is full in Main.main @ 8", nil)},
	{name: "more instructions than are wanted",
		params: `{"frames":[{"method":"Main.f","position":0,"resume":"reexecute","locals":[],"stack":[]}],"steps":1,"tail":5}`,
		want:   `{"unsupported":"it has run 1 instructions, and more are not wanted","steps":1,"tail":["Main.f @ 0 GET 0"]}`},

	{name: "to behind an instruction",
		params:  `{"frames":[{"method":"Main.main","position":0,"resume":"reexecute","locals":[],"stack":[]}],"tail":3,"stop":{"after":1}}`,
		want:    `{"stopped":{"frames":[` + standing("Main.main", 1, "reexecute", "set 0", `{"index":0,"dead":true}`, `{"index":0,"type":"ref","bits":"0x5f0000000000","value":"0x5f0000000000"}`, "", 0) + `]},"steps":1,"tail":["Main.main @ 0 NEW Point"],"locked":false}`,
		written: map[uint64]uint64{0x5f0000000000: 0x100000000000, 0x5f0000000008: 2 << 32}},
	{name: "into a call",
		params: `{"frames":[{"method":"Main.main","position":8,"resume":"reexecute","locals":[{"index":0,"type":"ref","bits":"0x100000001000"}],"stack":[{"index":0,"type":"i32","value":"2","bits":"0x2"}],
			"extra":{"extra 2":{"type":"i64","bits":"0x3"}}}],"stop":{"after":1}}`,
		want: `{"stopped":{"frames":[` + standing("Main.f", 0, "reexecute", "get 0", `{"index":0,"type":"i32","bits":"0x2","value":"2"}`, "", "", -1) + `,` +
			standing("Main.main", 8, "in-call", "call Main.f", `{"index":0,"type":"ref","bits":"0x100000001000","value":"0x100000001000"}`, "", "", 3) + `]},"steps":1,"tail":[],"locked":false}`,
		written: map[uint64]uint64{servedFuel: 1}},
	{name: "over a call",
		params:  `{"frames":[{"method":"Main.main","position":8,"resume":"reexecute","locals":[],"stack":[{"index":0,"type":"i32","value":"2","bits":"0x2"}]}],"stop":{"after":1,"frames":1}}`,
		want:    `{"stopped":{"frames":[` + standing("Main.main", 9, "reexecute", "get 0", `{"index":0,"dead":true}`, `{"index":0,"type":"i32","bits":"0x6","value":"6"}`, "", 0) + `]},"steps":5,"tail":[],"locked":false}`,
		written: map[uint64]uint64{servedFuel: 1}},
	{name: "to where a frame has returned",
		params: `{"frames":[{"method":"Main.f","position":1,"resume":"reexecute","locals":[],"stack":[{"index":0,"type":"f64","value":"0.5","bits":"0x3fe0000000000000"}]},
			{"method":"Main.main","position":8,"resume":"in-call","locals":[{"index":0,"object":4}],"stack":[]}],
			"objects":[{"id":4,"class":"Point","fields":[{"at":16,"type":"null"},{"at":24,"type":"null"}]}],"stop":{"after":1,"frames":1}}`,
		want: `{"stopped":{"frames":[` + standing("Main.main", 9, "reexecute", "get 0", `{"index":0,"type":"ref","bits":"0x5f0000000000","value":"0x5f0000000000"}`,
			`{"index":0,"type":"f64","bits":"0x3ff8000000000000","value":"1.5"}`, "", 0) + `]},"steps":3,"tail":[],"locked":false}`,
		written: map[uint64]uint64{0x5f0000000000: 0x100000000000, 0x5f0000000008: 2 << 32, 0x5f0000000010: 0, 0x5f0000000018: 0}},
	{name: "a call that has returned, and an instruction",
		params: `{"frames":[{"method":"Main.main","position":8,"resume":"in-call","locals":[{"index":0,"type":"null","bits":"0x0"}],"stack":[]}],"returned":{"type":"i64","bits":"0xffff000000000001"},"stop":{"after":1}}`,
		want: `{"stopped":{"frames":[` + standing("Main.main", 10, "reexecute", "getfield y", `{"index":0,"type":"null","bits":"0x0","value":"null"}`,
			`{"index":0,"type":"i32","bits":"0x1","value":"1"},{"index":1,"type":"null","bits":"0x0","value":"null"}`, "", 0) + `]},"steps":1,"tail":[],"locked":false}`},
	{name: "a monitor that is held where it stops",
		params: `{"frames":[{"method":"Main.hold","position":1,"resume":"reexecute","locals":[],"stack":[{"index":0,"type":"ref","bits":"0x100000001000"}]}],"stop":{"after":1}}`,
		want: `{"stopped":{"frames":[` + standing("Main.hold", 2, "reexecute", "get 0", `{"index":0,"dead":true},{"index":1,"dead":true}`, "",
			`{"owner":{"type":"ref","bits":"0x100000001000","value":"0x100000001000"}}`, 0) + `]},"steps":1,"tail":[]}`,
		written: map[uint64]uint64{servedPoint + 8: 2<<32 | 1}},
	{name: "constants",
		params: `{"frames":[{"method":"Main.hold","position":6,"resume":"after","locals":[],"stack":[]}],"stop":{"after":2,"frames":5}}`,
		want: `{"stopped":{"frames":[` + standing("Main.hold", 9, "reexecute", "div", `{"index":0,"dead":true},{"index":1,"dead":true}`,
			`{"index":0,"type":"f64","bits":"0x0","value":"0"},{"index":1,"type":"f64","bits":"0x8000000000000000","value":"-0"}`, "", 0) + `]},"steps":2,"tail":[],"locked":false}`},
	{name: "an end before it is to stop",
		params: `{"frames":[{"method":"Main.f","position":2,"resume":"after","locals":[],"stack":[{"index":0,"type":"ref","bits":"0x100000001000"}]}],"stop":{"after":2}}`,
		want:   `{"returned":{"type":"i64","bits":"0x100000001000","text":"a Point"},"steps":1,"tail":[],"locked":false}`},

	{name: "no such method",
		params: `{"frames":[{"method":"Main.g","position":0,"resume":"reexecute","locals":[],"stack":[]}]}`,
		want:   `{"malformed":"frame 0, Main.g @ 0: the program has no method Main.g","steps":0,"tail":[]}`},
	{name: "no such position",
		params: `{"frames":[{"method":"Main.f","position":4,"resume":"reexecute","locals":[],"stack":[]}]}`,
		want:   `{"malformed":"frame 0, Main.f @ 4: no such position is reached","steps":0,"tail":[]}`},
	{name: "an operand too few",
		params: `{"frames":[{"method":"Main.f","position":2,"resume":"reexecute","locals":[],"stack":[{"index":0,"type":"null"}]}]}`,
		want:   `{"malformed":"frame 0, Main.f @ 2: 1 values are on its stack, and the program has 2 there","steps":0,"tail":[]}`},
	{name: "a monitor too many",
		params: `{"frames":[{"method":"Main.f","position":0,"resume":"reexecute","locals":[],"stack":[],"monitors":[{"owner":{"type":"ref","bits":"0x100000001000"}}]}]}`,
		want:   `{"malformed":"frame 0, Main.f @ 0: it holds 1 monitors, and the program has 0 there","steps":0,"tail":[]}`},
	{name: "no call",
		params: `{"frames":[{"method":"Main.f","position":0,"resume":"reexecute","locals":[],"stack":[]},{"method":"Main.main","position":7,"resume":"in-call","locals":[],"stack":[]}]}`,
		want:   `{"malformed":"frame 1, Main.main @ 7: it does not wait for a call","steps":0,"tail":[]}`},
	{name: "another callee",
		params: `{"frames":[{"method":"Main.down","position":0,"resume":"reexecute","locals":[],"stack":[]},{"method":"Main.main","position":8,"resume":"in-call","locals":[],"stack":[]}]}`,
		want:   `{"malformed":"frame 0, Main.down @ 0: the frame that waits for it has called Main.f","steps":0,"tail":[]}`},
	{name: "after a jump",
		params: `{"frames":[{"method":"Main.down","position":1,"resume":"after","locals":[],"stack":[]}]}`,
		want:   `{"unsupported":"frame 0, Main.down @ 1: what is after IF is not at one place","steps":0,"tail":[]}`},
	{name: "an exception",
		params: `{"frames":[{"method":"Main.f","position":0,"resume":"rethrow","locals":[],"stack":[]}]}`,
		want:   `{"unsupported":"frame 0, Main.f @ 0: nothing of tinyvm is resumed by rethrow","steps":0,"tail":[]}`},
	{name: "no result",
		params: `{"frames":[{"method":"Main.main","position":8,"resume":"in-call","locals":[],"stack":[]}]}`,
		want:   `{"unsupported":"frame 0, Main.main @ 8: what the call has returned is missing","steps":0,"tail":[]}`},
	{name: "no value of tinyvm",
		params: `{"frames":[{"method":"Main.f","position":0,"resume":"reexecute","locals":[{"index":0,"type":"i64","value":"7","bits":"0x7"}],"stack":[]}]}`,
		want:   `{"malformed":"frame 0, Main.f @ 0: 7 of type i64 is no value of tinyvm","steps":0,"tail":[]}`},
	{name: "no such class",
		params: `{"frames":[{"method":"Main.f","position":0,"resume":"reexecute","locals":[],"stack":[]}],"objects":[{"id":1,"class":"Line","fields":[]}]}`,
		want:   `{"malformed":"an object: the program has no class Line","steps":0,"tail":[]}`},
	{name: "no such field",
		params: `{"frames":[{"method":"Main.f","position":0,"resume":"reexecute","locals":[],"stack":[]}],"objects":[{"id":1,"class":"Point","fields":[{"at":32,"type":"null"}]}]}`,
		want:   `{"malformed":"object 1, a Point: no field is at 32","steps":0,"tail":[]}`},
	{name: "a reference to nothing",
		params: `{"frames":[{"method":"Main.f","position":3,"resume":"reexecute","locals":[],"stack":[{"index":0,"type":"ref","bits":"0x10"}]}]}`,
		want:   `{"unsupported":"0x10 is no reference: 0x10 is not mapped","steps":1,"tail":[]}`},
	{name: "a reference to something else",
		params: `{"frames":[{"method":"Main.f","position":3,"resume":"reexecute","locals":[],"stack":[{"index":0,"type":"ref","bits":"0x100000001040"}]}]}`,
		want:   `{"unsupported":"0x100000001040 is no reference: no object of a class of the program is there","steps":1,"tail":[]}`},
	{name: "a reference to an object of another size",
		params: `{"frames":[{"method":"Main.f","position":3,"resume":"reexecute","locals":[],"stack":[{"index":0,"type":"ref","bits":"0x100000001080"}]}]}`,
		want:   `{"unsupported":"0x100000001080 is no reference: no object of a class of the program is there","steps":1,"tail":[]}`},
	{name: "names elsewhere",
		params: `{"frames":[{"method":"Main.main","position":0,"resume":"reexecute","locals":[],"stack":[]}]}`,
		want:   `{"unsupported":"the name of Point is not where tinyvm keeps it","steps":1,"tail":[]}`,
		words:  map[uint64]uint64{0x100000000000: 0x78}},
}

// TestPythonServes requires that the interpreter in Python answers as doc/user/protocol.md says, at several moments of a target, one after another.
func TestPythonServes(t *testing.T) {
	t.Parallel()
	program := filepath.Join(t.TempDir(), "served.tvm")
	require.NoError(t, os.WriteFile(program, []byte(servedProgram), 0o644))
	s := serveBy(t, InPython(t, "--serve", program))
	require.JSONEq(t, `{"jsonrpc":"2.0","id":1,"result":{"protocol":"reframe.vm/1","name":"tinyvm.py","step":true}}`,
		s.say(t, `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocol":"reframe.vm/1","arch":"x86-64","order":"little","pointer":8,"target":"process"}}`))
	for _, c := range servedCases {
		words, symbols := servedMoment()
		maps.Copy(words, c.words)
		s.moment(words, symbols)
		require.JSONEq(t, c.want, s.resume(t, strings.Join(strings.Fields(c.params), " ")), c.name)
		if c.written == nil {
			c.written = map[uint64]uint64{}
		}
		require.Equal(t, c.written, s.written, c.name)
		require.Equal(t, c.output, s.output, c.name)
	}
	s.moment(servedMoment())
	delete(s.symbols, "tinyvm_stopped")
	require.JSONEq(t, `{"unsupported":"the process has no tinyvm_fuel, no tinyvm_stopped or no tinyvm_why: it is no tinyvm"}`, s.resume(t, `{"frames":[]}`))
	for line, want := range map[string]string{
		`{"jsonrpc":"2.0","id":3,"method":"stand"}`: `{"jsonrpc":"2.0","id":3,"error":{"code":-32601,"message":"there is no method stand"}}`,
		`{"jsonrpc":"2.0",`:                         `{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"this is no JSON"}}`,
		`7`:                                         `{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"this is no request"}}`,
	} {
		require.JSONEq(t, want, s.say(t, line))
	}
}

// TestTinyvmServes requires that tinyvm itself gives the same answers, except for the words of its reasons and the operands of instructions, which it
// omits.
func TestTinyvmServes(t *testing.T) {
	t.Parallel()
	program := filepath.Join(t.TempDir(), "served.tvm")
	require.NoError(t, os.WriteFile(program, []byte(servedProgram), 0o644))
	s := serveBy(t, []string{Binary(t, 19), "--serve", program})
	require.JSONEq(t, `{"jsonrpc":"2.0","id":1,"result":{"protocol":"reframe.vm/1","name":"tinyvm","step":true}}`,
		s.say(t, `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocol":"reframe.vm/1","arch":"amd64","order":"little","pointer":8,"target":"process"}}`))
	type answer struct {
		Returned, Threw        json.RawMessage
		Stopped                any
		Unsupported, Malformed string
		Steps                  int
		Tail                   []string
		Locked                 *bool
	}
	for _, c := range servedCases {
		words, symbols := servedMoment()
		maps.Copy(words, c.words)
		s.moment(words, symbols)
		var want, got answer
		s.ids = 0 // the ids restart for each call
		text := s.resume(t, withAllLocals(t, c.params))
		require.NoError(t, json.Unmarshal([]byte(c.want), &want))
		require.NoError(t, json.Unmarshal([]byte(text), &got), c.name)
		require.Equal(t, want.Unsupported != "", got.Unsupported != "", "%s: %s", c.name, text)
		require.Equal(t, want.Malformed != "", got.Malformed != "", "%s: %s", c.name, text)
		if want.Unsupported+want.Malformed != "" {
			continue
		}
		require.Equal(t, want.Steps, got.Steps, c.name)
		require.Equal(t, string(want.Returned), string(got.Returned), c.name)
		require.Equal(t, string(want.Threw), string(got.Threw), c.name)
		require.Equal(t, want.Stopped, got.Stopped, c.name)
		if got.Locked != nil { // tinyvm does not report released locks
			require.Equal(t, want.Locked, got.Locked, c.name)
		}
		require.Len(t, got.Tail, len(want.Tail), c.name)
		for n := range want.Tail {
			require.True(t, strings.HasPrefix(strings.ToLower(want.Tail[n]), strings.ToLower(got.Tail[n])), "%s: %s, %s", c.name, want.Tail[n], got.Tail[n])
		}
		same := func(at, is uint64) bool { return words[at] == is }
		maps.DeleteFunc(s.written, same)
		changes := maps.Clone(c.written)
		maps.DeleteFunc(changes, same)
		if changes == nil {
			changes = map[uint64]uint64{}
		}
		require.Equal(t, changes, s.written, c.name)
		require.Equal(t, c.output, s.output, c.name)
	}
}

// withAllLocals adds the missing locals of a method as dead values, because tinyvm requires all of them, as layouts provide them.
func withAllLocals(t *testing.T, params string) string {
	t.Helper()
	var request map[string]any
	d := json.NewDecoder(strings.NewReader(params))
	d.UseNumber()
	require.NoError(t, d.Decode(&request))
	for _, f := range request["frames"].([]any) {
		frame := f.(map[string]any)
		locals := frame["locals"].([]any)
		given := map[string]bool{}
		for _, l := range locals {
			given[fmt.Sprint(l.(map[string]any)["index"])] = true
		}
		count := regexp.MustCompile(`(?m)^method ` + frame["method"].(string) + ` \d+ (\d+)`).FindStringSubmatch(servedProgram)
		for n := 0; count != nil && fmt.Sprint(n) != count[1]; n++ {
			if !given[fmt.Sprint(n)] {
				locals = append(locals, map[string]any{"index": n, "dead": true})
			}
		}
		frame["locals"] = locals
	}
	text, err := json.Marshal(request)
	require.NoError(t, err)
	return string(text)
}

// TestPythonClient requires, of the Python file that users copy, that output of the user's class does not get into the protocol, that its exceptions
// are reported, and that requests precede their answers.
func TestPythonClient(t *testing.T) {
	t.Parallel()
	mine := filepath.Join(t.TempDir(), "mine.py")
	require.NoError(t, os.WriteFile(mine, []byte(`
import os, sys
sys.dont_write_bytecode = True
sys.path.insert(0, sys.argv[1])
import reframe_vm

class Mine(reframe_vm.VM):
    name = "mine"

    def resume(self, request, target):
        print("astray")
        os.system("echo astray too")
        method = request["frames"][0]["method"]
        if method == "raises":
            raise ValueError("what is this?")
        if method == "cannot":
            raise reframe_vm.Unsupported("no such thing")
        if method == "list":
            return []
        if method == "many":
            words = target.read([(0x404000 + 8 * (n % 2), 8) for n in range(100000)])
            found = target.ask_all([("symbol", {"names": ["tinyvm_fuel", "x" * 500]})] * 10000)
            return reframe_vm.returned(len(words), text=f"{words[0].hex()} {words[99999].hex()} {len(found)} {found[9999]}")
        if method == "unreadable":
            parts = target.try_read([(0x404000, 8), (0x10, 8)])
            return reframe_vm.returned(0, text=f"{parts[0].hex()} {parts[1]}")
        target.write_words({target.symbol("tinyvm_fuel"): target.read_word(0x404000) - 3, 0x404008: 1})
        return reframe_vm.returned(tail=[target.read_string(0x100000000000).decode(), f"{target.arch} {target.order} {target.pointer}"])

Mine().serve()
`), 0o644))
	s := serveBy(t, []string{Python(t), mine, livetest.Testdata(t, "..", "examples", "protocol")})
	s.say(t, `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocol":"reframe.vm/1","arch":"x86-64","order":"little","pointer":8,"target":"process"}}`)
	for _, c := range []struct{ method, want string }{
		{"raises", `"error":{"code":-32000,"message":"ValueError: what is this?"}`},
		{"list", `"error":{"code":-32000,"message":"TypeError: resume answers [], and a dictionary is wanted"}`},
		{"cannot", `"result":{"unsupported":"no such thing"}`},
		{"many", `"result":{"returned":{"type":"i64","bits":"0x186a0","text":"0200000000000000 0000000000000000 10000 [{'at': '0x404000'}, None]"}}`},
		{"unreadable", `"result":{"returned":{"type":"i64","bits":"0x0","text":"0200000000000000 0x10 is not mapped"}}`},
		{"conveniences", `"result":{"returned":null,"tail":["Point","x86-64 little 8"]}`},
	} {
		s.moment(servedMoment())
		require.JSONEq(t, `{"jsonrpc":"2.0","id":5,`+c.want+`}`, s.say(t, `{"jsonrpc":"2.0","id":5,"method":"resume","params":{"frames":[{"method":"`+c.method+`"}]}}`), c.method)
	}
	require.Equal(t, map[uint64]uint64{servedFuel: 1<<64 - 1, servedStopped: 1}, s.written)
}
