// Package remote reads and runs a process that a stub of gdb's remote serial protocol holds: gdbserver, lldb-server, an emulator, or a debugger that
// acts as a stub. The protocol is appendix E of gdb's manual, "GDB Remote Serial Protocol".
//
// Its main function is [Open], which returns a [holder.State].
//
// Without [Options].Control, the package sends no packet that changes the process, resumes it or detaches from it. When the connection closes, some
// stubs keep the process stopped, and others detach from it (doc/user/remote.md).
//
// # Security
//
// All replies are hostile. Packets, descriptions, lists and files have limits, and every request has a time limit. The command of an address that
// begins with | is the user's own, and runs with the user's rights.
package remote

import (
	"cmp"
	"context"
	"encoding/hex"
	"encoding/xml"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"example.com/reframe/internal/machine"
	"example.com/reframe/ptrace/holder"
	"example.com/reframe/ptrace/system"
)

// Options are the options of [Open].
type Options struct {
	// Timeout bounds the time of all requests together. 0 means a minute for the requests of [Open], and no limit for later ones. The limit for each
	// request is 10 s, or a sixth of Timeout if that is longer.
	Timeout time.Duration
	// Control requests a [holder.Control] in the state. In this case ctx applies only to Open; afterwards Timeout bounds the time of each reply.
	Control bool
	// Program is the path of the program's file on this machine, or "". The file's byte order is used if neither the auxiliary vector nor the
	// registers show the byte order.
	Program string
}

// Time limits: for all requests together if [Options] do not give one, and the shortest limit for one request. Tests set defaultTime.
var defaultTime = time.Minute

const requestTime = 10 * time.Second

// Limits on lists.
const (
	maxThreads  = 1 << 16
	maxText     = 16 << 20 // bytes of one object of qXfer
	maxMappings = system.MaxMappings
)

// ErrNoProcess is wrapped in the error for a stub that does not hold a process.
var ErrNoProcess = errors.New("the stub holds no process")

// Open connects to a stub and reads the state of the process that it holds. addr is host:port, unix:PATH or | COMMAND. The errors do not name addr.
func Open(ctx context.Context, addr string, o Options) (*holder.State, error) {
	return open(ctx, addr, max(requestTime, cmp.Or(o.Timeout, defaultTime)/6), o)
}

// open is like Open, with a time limit for each request.
func open(ctx context.Context, addr string, request time.Duration, o Options) (_ *holder.State, err error) {
	end := time.Now().Add(cmp.Or(o.Timeout, defaultTime))
	dialing, cancel := context.WithDeadline(ctx, end)
	defer cancel()
	c, err := dial(dialing, addr)
	if err != nil {
		return nil, err
	}
	s := &stub{conn: newConn(ctx, c, request, end), addr: addr, controls: o.Control, programFile: o.Program}
	defer func() {
		if err != nil {
			c.Close()
		}
	}()
	if err := s.begin(); err != nil {
		return nil, err
	}
	state := &holder.State{Kind: holder.Remote, Addr: addr, Memory: s}
	if inside := holder.Kind(s.features["reframe-inside"]); inside == holder.GDB || inside == holder.LLDB {
		state.Kind = inside
	}
	stop := context.AfterFunc(ctx, func() { _ = c.SetDeadline(time.Now()) }) // an error means that it is closed
	state.Close = func() error {
		stop()
		return c.Close()
	}
	if err := s.threads(state); err != nil {
		return nil, err
	}
	state.Arch = s.description.arch
	s.process(state)
	if s.lost != nil {
		return nil, s.lost
	}
	if s.canOpen {
		state.Open = s.open
	}
	if o.Timeout == 0 || o.Control { // an interactive session reads memory for an unlimited time
		s.end = time.Time{}
	}
	if o.Control {
		run, err := newControl(s)
		if err != nil {
			return nil, err
		}
		stop()
		s.ctx = context.WithoutCancel(ctx)
		if o.Timeout > 0 {
			s.timeout = o.Timeout
		}
		state.Control = run
	}
	return state, nil
}

// stub is a connection to a stub that holds a process.
type stub struct {
	*conn
	features    map[string]string // the reply to qSupported: "+", "-", "?" or a value
	packet      int               // the maximum size of a packet
	description *description
	pid         int    // 0 if the stub does not give it
	auxv        []byte // nil if the stub does not provide it
	others      int    // number of threads of other processes
	canOpen     bool   // the stub can open files
	fetched     int64  // bytes of files that were copied
	noBinary    bool   // the stub does not support the packet x, which reads memory in binary
	addr        string
	controls    bool // the caller requested a Control, so the process may be resumed
	programFile string
	multi       bool // thread numbers are preceded by the number of the process
	unthreaded  bool // the stub does not support threads
	pcRegister  int  // index of the program counter in the description; -1 if it has another name
	spRegister  int  // index of the stack pointer in the description; -1 if it has another name
}

// begin negotiates features, and checks that a process is stopped.
func (s *stub) begin() error {
	// Lldb-server 19 does not understand the first feature.
	request := "qSupported:xmlRegisters=i386,arm,riscv,s390,powerpc;multiprocess+;swbreak+;hwbreak+"
	if s.controls {
		request += ";fork-events+;vfork-events+;exec-events+;vContSupported+"
	}
	reply, err := s.ask(request)
	if err != nil {
		return err
	}
	if stopReply.Match(reply) { // QEMU stops a machine when a client connects, and reports the stop first
		if reply, err = s.skip(); err != nil {
			return err
		}
	}
	s.packet = leastPacket
	s.features = map[string]string{}
	for item := range strings.SplitSeq(string(reply), ";") {
		name, value, ok := strings.Cut(item, "=")
		if !ok && item != "" {
			name, value = item[:len(item)-1], item[len(item)-1:]
		}
		s.features[name] = value
	}
	if size, err := strconv.ParseUint(s.features["PacketSize"], 16, 32); err == nil {
		s.packet = int(min(max(size, leastPacket), maxPacket))
	}
	if s.features["QStartNoAckMode"] == "+" {
		if reply, err = s.ask("QStartNoAckMode"); err != nil {
			return err
		}
		s.acks = string(reply) != "OK"
	}
	if reply, err = s.ask("?"); err != nil {
		return err
	}
	switch {
	case len(reply) > 0 && (reply[0] == 'T' || reply[0] == 'S'):
	case len(reply) > 0 && (reply[0] == 'W' || reply[0] == 'X' || reply[0] == 'N'):
		return ErrNoProcess
	case len(reply) > 0 && reply[0] == 'E':
		return fmt.Errorf("%w: it answers %s", ErrNoProcess, clean(reply))
	default:
		return fmt.Errorf("the stub does not report a stopped process: it answers %q", clean(reply))
	}
	if s.features["qXfer:features:read"] != "+" {
		return errors.New("the stub does not describe its registers (qXfer:features:read)")
	}
	s.description, err = describe(func(name string) (string, error) {
		b, err := s.transfer("features", name)
		return string(b), err
	})
	if s.lost != nil {
		return s.lost
	}
	s.pcRegister, s.spRegister = -1, -1
	if err == nil {
		s.spRegister = slices.IndexFunc(s.description.registers, func(r register) bool { return r.name == "sp" || r.name == "rsp" })
		s.pcRegister = slices.IndexFunc(s.description.registers, func(r register) bool { return r.name == "pc" || r.name == "rip" })
	}
	if err == nil && s.features["qXfer:auxv:read"] == "+" {
		s.auxv, _ = s.transfer("auxv", "") // if it cannot be read, the program's entry point is unknown
	}
	return cmp.Or(s.lost, err)
}

// stopReply matches the beginning of a report that a process has stopped ("Stop Reply Packets").
var stopReply = regexp.MustCompile(`^[ST][0-9a-f]{2}`)

// clean shortens a reply for a message, and removes everything except printable ASCII.
func clean(reply []byte) string {
	const most = 60
	out := strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' {
			return -1
		}
		return r
	}, string(reply[:min(len(reply), most)]))
	return out
}

// transfer reads an object ("qXfer object read").
func (s *stub) transfer(object, annex string) ([]byte, error) {
	var all []byte
	for {
		size := s.packet - 8
		reply, err := s.ask(fmt.Sprintf("qXfer:%s:read:%s:%x,%x", object, annex, len(all), size))
		switch {
		case err != nil:
			return nil, err
		case len(reply) == 0:
			return nil, errors.New("the stub does not support it")
		case reply[0] == 'E':
			return nil, fmt.Errorf("the stub answers %s", clean(reply))
		case reply[0] != 'l' && reply[0] != 'm', reply[0] == 'm' && len(reply) == 1:
			return nil, errors.New("the reply is malformed")
		}
		if all = append(all, reply[1:]...); len(all) > maxText {
			return nil, fmt.Errorf("it has more than %d bytes", maxText)
		}
		if reply[0] == 'l' {
			return all, nil
		}
	}
}

// threadID is a thread as the protocol names it, with its number.
type threadID struct {
	text     string
	pid, tid int
}

// parseThread parses p1f.2a or 2a. ok is false for 0 and -1, which mean any thread and all threads.
func parseThread(text string) (id threadID, ok bool) {
	id.text = text
	number := text
	if rest, multi := strings.CutPrefix(text, "p"); multi {
		process, thread, both := strings.Cut(rest, ".")
		pid, err := strconv.ParseUint(process, 16, 31)
		if err != nil || !both || pid == 0 {
			return id, false
		}
		id.pid, number = int(pid), thread
	}
	tid, err := strconv.ParseUint(number, 16, 31)
	id.tid = int(tid)
	return id, err == nil && tid > 0
}

// list returns the threads of the process that the stub lists first.
func (s *stub) list() ([]threadID, error) {
	var ids []threadID
	for request := "qfThreadInfo"; ; request = "qsThreadInfo" {
		reply, err := s.ask(request)
		switch {
		case err != nil:
			return nil, err
		case len(reply) == 0 && request == "qfThreadInfo":
			s.unthreaded = true
			return []threadID{{"", 0, 1}}, nil
		case len(reply) == 0 || reply[0] == 'l':
			if len(ids) == 0 {
				return nil, ErrNoProcess
			}
			return ids, nil
		case reply[0] != 'm':
			return nil, fmt.Errorf("the list of threads is malformed: %q", clean(reply))
		}
		for text := range strings.SplitSeq(string(reply[1:]), ",") {
			id, ok := parseThread(text)
			switch {
			case !ok:
				return nil, fmt.Errorf("the list of threads is malformed: %q", clean([]byte(text)))
			case len(ids) == maxThreads:
				return nil, fmt.Errorf("the stub lists more than %d threads", maxThreads)
			case len(ids) == 0 || id.pid == ids[0].pid:
				ids = append(ids, id)
			default:
				s.others++
			}
		}
	}
}

// threads reads the threads and their registers.
func (s *stub) threads(out *holder.State) error {
	ids, err := s.list()
	if err != nil {
		return err
	}
	if s.pid, s.multi = ids[0].pid, ids[0].pid > 0; s.pid == 0 {
		s.pid = s.pidOfLLDB()
	}
	if s.pid == 0 && len(s.auxv) > 0 { // Linux gives the first thread the number of the process (gettid(2)), and stubs list that thread first
		s.pid = ids[0].tid
	}
	if s.others > 0 {
		out.Notes = append(out.Notes, fmt.Sprintf("the stub holds other processes too; their %d threads are not shown", s.others))
	}
	names := s.names()
	settled := false
	for _, id := range ids {
		th := machine.Thread{ID: id.tid, Name: names[id.tid]}
		v, err := s.values(id)
		if s.lost != nil {
			return s.lost
		}
		if err == nil && !settled {
			if s.description.arch, err = orderOf(s.description.arch, s.auxv, v, s.programFile); err != nil {
				return err
			}
			settled = true
		}
		if err == nil {
			th.Registers, err = s.description.registersOf(v)
		}
		if err != nil {
			th.Registers, th.Missing = nil, err.Error()
		}
		out.Threads = append(out.Threads, th)
	}
	sortThreads(out.Threads, s.pid)
	return nil
}

// sortThreads sorts threads by number, but puts the first thread of the process before the others.
func sortThreads(list []machine.Thread, pid int) {
	slices.SortStableFunc(list, func(a, b machine.Thread) int {
		switch {
		case (a.ID == pid) != (b.ID == pid):
			if a.ID == pid {
				return -1
			}
			return 1
		}
		return a.ID - b.ID
	})
}

// names returns the names of threads that the stub lists (qXfer:threads:read).
func (s *stub) names() map[int]string {
	if s.features["qXfer:threads:read"] != "+" {
		return nil
	}
	text, err := s.transfer("threads", "")
	var list struct {
		Threads []struct {
			ID   string `xml:"id,attr"`
			Name string `xml:"name,attr"`
		} `xml:"thread"`
	}
	if err != nil || xml.Unmarshal(text, &list) != nil {
		return nil
	}
	names := map[int]string{}
	for _, th := range list.Threads {
		if id, ok := parseThread(th.ID); ok {
			names[id.tid] = th.Name
		}
	}
	return names
}

// values reads the registers of a thread.
func (s *stub) values(id threadID) (values, error) {
	if id.text != "" {
		reply, err := s.ask("Hg" + id.text)
		if err != nil {
			return nil, err
		}
		if string(reply) != "OK" {
			return nil, fmt.Errorf("the stub cannot select the thread: it answers %q", clean(reply))
		}
	}
	reply, err := s.ask("g")
	if err != nil {
		return nil, err
	}
	var v values
	if len(reply) == 0 || failed(reply) {
		v = values{} // request each register separately
	} else if v, err = s.description.parse(reply); err != nil {
		return nil, err
	}
	for _, r := range s.description.registers {
		if v[r.name] != nil || 2*(r.at+r.size) <= len(reply) {
			continue
		}
		reply, err := s.ask(fmt.Sprintf("p%x", r.number))
		if err != nil {
			return nil, err
		}
		if len(reply) != 2*r.size || reply[0] == 'x' {
			continue
		}
		b := make([]byte, r.size)
		if _, err := hex.Decode(b, reply); err == nil {
			v[r.name] = b
		}
	}
	return v, nil
}
