package protocheck_test

import (
	"bufio"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// faultVariable names the environment variable with the fault of the toy interpreter. If it is set, the test program runs the toy instead of tests.
const faultVariable = "PROTOCHECK_FAULT"

func init() {
	if fault, is := os.LookupEnv(faultVariable); is {
		(&toy{in: bufio.NewReader(os.Stdin), fault: fault}).serve()
		os.Exit(0)
	}
}

// toy is an interpreter of one method, Toy.add. Its position 3 adds the value on the stack to the word counter 5,000 times, and returns it. If it
// must stop before the end, it has called Toy.more, which counts the iterations.
type toy struct {
	in    *bufio.Reader
	fault string
	last  int // id of its last request

	asked int    // number of requests
	kept  uint64 // with the fault "keeps": added to the sum in each resume after the first
	line  string
}

type object = map[string]any

func (y *toy) say(v any) {
	text, err := json.Marshal(v)
	if err != nil {
		os.Exit(8)
	}
	fmt.Println(string(text))
}

func (y *toy) read() object {
	line, err := y.in.ReadString('\n')
	if err != nil {
		if y.fault == "stays" {
			time.Sleep(time.Hour)
		}
		os.Exit(0)
	}
	y.line = line
	v := object{}
	if json.Unmarshal([]byte(line), &v) != nil {
		os.Exit(7)
	}
	return v
}

// ask sends a request to reframe, and returns nil if the answer is an error.
func (y *toy) ask(method string, params object) any {
	y.last++
	y.say(object{"jsonrpc": "2.0", "id": y.last, "method": method, "params": params})
	return y.read()["result"]
}

func (y *toy) serve() {
	for {
		m := y.read()
		id, answers := m["id"]
		answer := object{"jsonrpc": "2.0", "id": id}
		switch m["method"] {
		case "initialize":
			about := object{"protocol": "reframe.vm/1", "name": "toy", "step": true}
			if y.fault == "nameless" {
				delete(about, "name")
			}
			answer["result"] = about
		case "resume":
			y.asked++
			request, _ := m["params"].(object)
			y.last = 0
			answer["result"] = y.resume(request)
		default:
			switch {
			case y.fault == "knows-all":
				answer["result"] = object{}
			case y.fault == "wrong-error":
				answer["error"] = object{"code": -32000, "message": "what?"}
			default:
				answer["error"] = object{"code": -32601, "message": "no such method"}
			}
		}
		if answers || y.fault == "answers-notifications" {
			y.say(answer)
		}
	}
}

func unsupported(why string) object { return object{"unsupported": why} }

func malformed(why string) object { return object{"malformed": why} }

func (y *toy) resume(r object) object {
	frames, _ := r["frames"].([]any)
	if len(frames) == 0 {
		if y.fault == "dies-of-nothing" {
			os.Exit(9)
		}
		return unsupported("no frames")
	}
	f, _ := frames[0].(object)
	var done uint64
	if f["method"] == "Toy.more" && len(frames) > 1 {
		extra, _ := f["extra"].(object)
		times, _ := extra["done"].(object)
		text, _ := times["bits"].(string)
		done, _ = strconv.ParseUint(text, 0, 64)
		f, _ = frames[1].(object)
	}
	stack, _ := f["stack"].([]any)
	objects, _ := r["objects"].([]any)
	switch {
	case f["method"] != "Toy.add" && y.fault == "runs-anything":
		return object{"returned": nil}
	case f["method"] != "Toy.add":
		return unsupported("no such method")
	case f["position"] != 3.0 && y.fault != "any-position":
		return malformed("no such position")
	case len(stack) != 1 && y.fault != "any-stack":
		return malformed("the stack has one value there")
	case len(objects) != 1 && y.fault != "any-object":
		return malformed("its local is an object that is not described")
	}
	for name := range f {
		if y.fault == "strict" && !strings.Contains("method position resume locals stack", name) {
			return unsupported("what is " + name + "?")
		}
	}
	if y.fault == "by-text" && done == 0 && !strings.Contains(y.line, `{"frames":[{"method":"Toy.add","position":3,"resume":"reexecute"`) {
		return unsupported("these are no frames")
	}
	var at object
	if list, _ := y.ask("symbol", object{"names": []string{"counter"}}).([]any); len(list) == 1 && list[0] != nil {
		at, _ = list[0].(object)
	} else if y.fault == "needs-symbols" {
		os.Exit(6)
	} else {
		return unsupported("there is no counter")
	}
	word := object{}
	if list, _ := y.ask("memory.read", object{"ranges": []object{{"at": at["at"], "size": 8}}}).([]any); len(list) == 1 {
		word, _ = list[0].(object)
	}
	data, _ := word["data"].(string)
	bytes, _ := hex.DecodeString(data)
	if len(bytes) != 8 {
		if y.fault != "guesses" {
			return unsupported("counter cannot be read")
		}
		bytes = make([]byte, 8)
	}
	if y.ask("memory.allocate", object{"size": 16, "align": 16}) == nil && y.fault != "allocates-blindly" {
		return unsupported("there is no memory")
	}
	left, stops := 5000-done, false
	if stop, is := r["stop"].(object); is && (stop["frames"] == nil || y.fault == "stops-deep") {
		after, _ := stop["after"].(float64)
		if y.fault == "stops-late" {
			after++
		} else if y.fault == "stops-once" && after > 1 {
			after = 1
		} else if y.fault == "runs-first" && after == 0 {
			after = 1
		}
		if stops = uint64(after) < left; stops {
			left = uint64(after)
		}
	}
	sum := uint64(bytes[0]) + 7*left
	if done > 0 {
		sum = binary.LittleEndian.Uint64(bytes) + 7*left
	}
	if y.fault == "keeps" {
		sum += y.kept
		y.kept = 1
	}
	if y.fault == "starts-badly" && y.asked == 1 {
		sum++
	}
	for i := range bytes {
		bytes[i] = byte(sum >> (8 * i))
	}
	if y.fault == "stores-otherwise" && y.asked == 4 { // the repeated run
		bytes[7] = 1
	}
	if y.fault == "loses" && stops {
		// The toy keeps the sum for the next iteration.
	} else if y.ask("memory.write", object{"ranges": []object{{"at": at["at"], "data": hex.EncodeToString(bytes)}}}) == nil && y.fault != "writes-blindly" {
		return unsupported("counter cannot be written")
	}
	if steps, _ := r["steps"].(float64); steps < 5000 && y.fault != "endless" {
		return unsupported("it has run enough")
	}
	if stops {
		f["resume"] = "in-call"
		more := object{"method": "Toy.more", "position": 0, "resume": "reexecute", "locals": []any{}, "stack": []any{}, "extra": object{"done": object{"bits": fmt.Sprintf("%#x", done+left)}}}
		return object{"stopped": object{"frames": []any{more, f}, "objects": objects}, "steps": left, "locked": false}
	}
	y.say(object{"jsonrpc": "2.0", "method": "output", "params": object{"text": "added\n"}})
	tail := []string{"Toy.add @ 3", "Toy.add @ 3", "Toy.add @ 3", "Toy.add @ 3"}
	if wanted, _ := r["tail"].(float64); y.fault != "tells-all" {
		tail = tail[:min(len(tail), int(wanted))]
	}
	member := "returned"
	if y.fault == "spells" {
		member = "Returned"
	}
	return object{member: object{"type": "i64", "bits": fmt.Sprintf("%#x", sum)}, "steps": left, "tail": tail, "locked": false}
}
