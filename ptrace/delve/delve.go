// Package delve reads a process that Delve holds, through Delve's headless server (dlv attach, dlv debug and dlv exec, with --headless).
//
// It only reads: it sends no request that stops, resumes, changes or detaches from the process. Delve provides memory, threads and registers. If the
// process is on this machine, the package reads memory and the list of mappings from /proc instead, after it has verified that this is the process
// that Delve holds.
//
// # Security
//
// All replies are hostile. The size of a reply, the time for it and the time for all replies are bounded, and the text of an error is one printable
// line.
package delve

import (
	"cmp"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"example.com/reframe/internal/machine"
	"example.com/reframe/ptrace/holder"
)

// Options are the options of [Open].
type Options struct {
	// Timeout bounds the time of all requests together; 0 means a minute. The limit for each request is 10 s, or a sixth of Timeout if that is
	// longer.
	Timeout time.Duration
	// Program is set if the user gives the program's file, so that its path is not required.
	Program bool
}

// Time limits: for all requests together if [Options] do not give one, and the shortest limit for one request. Tests set defaultTime.
var defaultTime = time.Minute

const requestTime = 10 * time.Second

// These errors are wrapped in those of [Open].
var (
	ErrAddress = errors.New("not an address: expected HOST:PORT or unix:PATH")
	ErrConnect = errors.New("cannot connect")
	ErrRunning = errors.New("the process runs, and is not stopped by this command")
	// ErrCore is the error for a core. Delve assumes that all mappings of files are mappings of the program (buildMemory of its
	// pkg/proc/core/linux_core.go), so that its memory may be wrong.
	ErrCore = errors.New("dlv holds a core, and takes memory that a core omits from the wrong files")
)

var errExited = errors.New("the process has exited")

// maxThreads bounds the number of threads, as for a core.
const maxThreads = 1 << 16

// Open connects to a headless server at host:port or unix:PATH, and reads the state of its process, which must be stopped. The errors do not name addr.
//
// When the connection is closed, a server without --accept-multiclient exits: it detaches from a process to which it attached, and kills a process
// that it started (Stop in Delve's service/rpccommon/server.go). A note of the state, or the error, says so.
func Open(ctx context.Context, addr string, o Options) (*holder.State, error) {
	return open(ctx, addr, o, true)
}

// open implements [Open]. If look is false, it reads everything through the server, even if the process is on this machine.
func open(ctx context.Context, addr string, o Options, look bool) (*holder.State, error) {
	c, err := dial(ctx, addr, cmp.Or(o.Timeout, defaultTime))
	if err != nil {
		return nil, err
	}
	s, err := read(c, o.Program, look)
	if err != nil {
		c.conn.Close()
		return nil, err
	}
	s.Addr = addr
	return s, nil
}

// version is the result of GetVersion.
type version struct {
	DelveVersion string
	APIVersion   int
	Backend      string
}

// state contains the used members of the result of State. While the process runs, Delve fills only some of them.
type state struct {
	PID       int    `json:"Pid"`
	Command   string `json:"TargetCommandLine"`
	Running   bool
	Recording bool
	Dumping   bool     `json:"CoreDumping"`
	Exited    bool     `json:"exited"`
	Status    int      `json:"exitStatus"`
	Threads   []thread `json:"Threads"`
	When      string   // the current event, in a recording of rr
}

type thread struct {
	ID         int         `json:"id"`
	PC         uint64      `json:"pc"`
	Breakpoint *breakpoint `json:"breakPoint"`
}

// getState returns the state without waiting for the process to stop.
func (c *client) getState() (*state, error) {
	var result struct{ State *state }
	if err := c.call("State", map[string]bool{"NonBlocking": true}, &result); err != nil {
		return nil, err
	}
	s := result.State
	switch {
	case s == nil:
		return nil, errors.New("its reply to State contains no state")
	case s.Running:
		return nil, ErrRunning
	case s.Recording:
		return nil, errors.New("it is still recording the process")
	case s.Dumping:
		return nil, errors.New("it is just writing a core of the process: try again")
	case s.Exited:
		return nil, fmt.Errorf("%w with status %d", errExited, s.Status)
	}
	return s, nil
}

// process is the process of a server while its state is being read.
type process struct {
	*client
	arch    *machine.Arch
	backend string
	pid     int
	first   *state // the state when the registers were read
	regs    []machine.Thread
	patches []patch
	// switches holds the context switches of each thread, before the registers were read, of the process with this number on this machine.
	switches map[int]string
	shared   bool // the server accepts other clients
}

// read reads the state of the process of a server. program is that of Options, and look is that of open.
func read(c *client, program, look bool) (*holder.State, error) {
	var v version
	if err := c.call("GetVersion", struct{}{}, &v); err != nil {
		return nil, err
	}
	if v.APIVersion != 2 {
		return nil, fmt.Errorf("its API has version %d, and version 2 is required (dlv --api-version=2)", v.APIVersion)
	}
	if v.Backend == "core" {
		return nil, ErrCore
	}
	p := &process{client: c, backend: v.Backend}
	end, err := p.readEnd()
	if err != nil {
		return nil, err
	}
	s, err := p.readState(program, look)
	switch {
	case end == "":
	case err == nil:
		s.Notes = append([]string{end}, s.Notes...)
	case !errors.Is(err, errExited):
		err = fmt.Errorf("%w (%s)", err, end) // after an error the connection also ends
	}
	return s, err
}

// readState reads everything except the version and the data that readEnd reads.
func (p *process) readState(program, look bool) (*holder.State, error) {
	first, err := p.getState()
	if err != nil {
		return nil, err
	}
	p.pid, p.first = first.PID, first
	if look {
		p.watch()
	}
	if err := p.readThreads(); err != nil {
		return nil, err
	}
	s := &holder.State{Kind: holder.Delve, Arch: p.arch, PID: p.pid, Command: first.Command}
	if err := p.readTargets(s); err != nil {
		return nil, err
	}
	if err := p.readBreakpoints(s); err != nil {
		return nil, err
	}
	var here *here
	if look {
		if here, err = p.prove(); err != nil {
			return nil, err
		}
	}
	if here != nil {
		p.readHere(s, here)
	} else if err := p.readThere(s, program); err != nil {
		return nil, err
	}
	s.Threads = p.regs
	return s, nil
}

// readEnd returns a note about the server's action at the end of this connection, or "" if nothing changes.
func (p *process) readEnd() (string, error) {
	var clients struct{ IsMulticlient bool }
	var attached struct{ Answer bool }
	if err := p.call("IsMulticlient", struct{}{}, &clients); err != nil {
		return "", err
	}
	if err := p.call("AttachedToExistingProcess", struct{}{}, &attached); err != nil {
		return "", err
	}
	p.shared = clients.IsMulticlient
	const ends = "this dlv was started without --accept-multiclient: after this command it ends, and "
	switch {
	case p.shared:
		return "", nil
	case attached.Answer:
		return ends + "detaches from the process, which runs on", nil
	}
	return ends + "kills the process, which it started", nil
}

// readTargets adds a note if the server holds several processes.
func (p *process) readTargets(s *holder.State) error {
	var targets struct {
		Targets []struct{ Pid int }
	}
	if err := p.call("ListTargets", struct{}{}, &targets); err != nil {
		return err
	}
	if n := len(targets.Targets); n > 1 {
		s.Notes = append(s.Notes, fmt.Sprintf("dlv holds %d processes; this is the one that is selected there", n))
	}
	return nil
}

// readThreads reads the registers of all threads.
func (p *process) readThreads() error {
	list := slices.SortedFunc(slices.Values(p.first.Threads), func(a, b thread) int {
		if (a.ID == p.pid) != (b.ID == p.pid) {
			return cmp.Compare(b2i(b.ID == p.pid), b2i(a.ID == p.pid))
		}
		return cmp.Compare(a.ID, b.ID)
	})
	switch {
	case len(list) == 0:
		return errors.New("it lists no thread")
	case len(list) > maxThreads:
		return fmt.Errorf("it lists %d threads; the limit is %d", len(list), maxThreads)
	}
	widest := 64
	if p.backend != "native" {
		widest = 32 // Delve guesses the place of bytes 32 to 63 in the XSAVE area (AMD64XstateRead in pkg/proc/amd64util)
	}
	for i, th := range list {
		if i > 0 && th.ID == list[i-1].ID {
			return fmt.Errorf("it lists thread %d twice", th.ID)
		}
		var result struct{ Regs []register }
		if err := p.call("ListRegisters", map[string]any{"ThreadID": th.ID, "IncludeFp": true}, &result); err != nil {
			return err
		}
		arch := archOf(result.Regs)
		if arch == nil || p.arch != nil && arch != p.arch {
			return fmt.Errorf("thread %d has the registers of an architecture that is not supported here (x86-64 and arm64 are)", th.ID)
		}
		p.arch = arch
		regs, err := parseRegisters(arch, result.Regs, widest)
		if err != nil {
			return fmt.Errorf("thread %d: %w", th.ID, err)
		}
		p.regs = append(p.regs, machine.Thread{ID: th.ID, Registers: regs})
	}
	return nil
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}

// breakpoint is a physical breakpoint in the list, or the one at which a thread has stopped.
type breakpoint struct {
	Addrs   []uint64 `json:"addrs"`
	PIDs    []int    `json:"addrpid"`
	Watch   uint8    `json:"WatchType"`
	Verbose []string `json:"VerboseDescr"`
	Hits    uint64   `json:"totalHitCount"`
}

// patch is code that a breakpoint has replaced in memory.
type patch struct {
	at   machine.Addr
	code []byte
}

// maxBreakpoints bounds the number of breakpoints.
const maxBreakpoints = 1 << 16

// readBreakpoints reads the code that breakpoints have replaced, which is only in the description for users (VerboseDescr of Delve's
// pkg/proc/breakpoints.go).
func (p *process) readBreakpoints(s *holder.State) error {
	var result struct{ Breakpoints []breakpoint }
	if err := p.call("ListBreakpoints", map[string]bool{"All": true}, &result); err != nil {
		return err
	}
	if n := len(result.Breakpoints); n > maxBreakpoints {
		return fmt.Errorf("it lists %d breakpoints; the limit is %d", n, maxBreakpoints)
	}
	for _, b := range result.Breakpoints {
		if b.Watch != 0 || len(b.Addrs) != 1 || len(b.PIDs) == 1 && b.PIDs[0] != p.pid {
			continue
		}
		at := machine.Addr(b.Addrs[0])
		code, ok := b.original()
		if !ok || len(code) != len(trap(p.arch)) {
			s.Notes = append(s.Notes, fmt.Sprintf("dlv has a breakpoint at %v, and does not show the code that it replaced there", at))
			continue
		}
		p.patches = append(p.patches, patch{at, code})
	}
	slices.SortFunc(p.patches, func(a, b patch) int { return cmp.Compare(a.at, b.at) })
	return nil
}

// original returns the code that the breakpoint has replaced.
func (b *breakpoint) original() ([]byte, bool) {
	for _, line := range b.Verbose {
		if digits, ok := strings.CutPrefix(line, "OriginalData=0x"); ok {
			code, err := hex.DecodeString(digits)
			return code, err == nil
		}
	}
	return nil, false
}

// trap returns the instruction that Delve writes for a breakpoint (AMD64Arch and ARM64Arch of pkg/proc).
func trap(arch *machine.Arch) []byte {
	if arch == machine.ARM64 {
		return []byte{0x00, 0x00, 0x20, 0xd4}
	}
	return []byte{0xcc}
}
