package goroutine

import (
	"errors"

	"github.com/go-delve/delve/pkg/dwarf/op"
	"github.com/go-delve/delve/pkg/proc"

	"example.com/reframe/internal/machine"
)

var errReadOnly = errors.New("the target is read-only")

// process is a target as Delve sees it. The embedded interface is nil. It provides the methods whose types are in internal packages of Delve, which
// cannot be named here. Delve calls these methods only for probes that a user requests.
type process struct {
	proc.ProcessInternal

	memory      memory
	entry       machine.Addr
	info        *proc.BinaryInfo
	thread      *thread // the thread that is being read
	breakpoints proc.BreakpointMap
}

func (p *process) BinInfo() *proc.BinaryInfo        { return p.info }
func (p *process) EntryPoint() (uint64, error)      { return uint64(p.entry), nil }
func (p *process) Breakpoints() *proc.BreakpointMap { return &p.breakpoints }
func (p *process) Memory() proc.MemoryReadWriter    { return &p.memory }
func (p *process) Valid() (bool, error)             { return true, nil }
func (p *process) SupportsBPF() bool                { return false }
func (p *process) ThreadList() []proc.Thread        { return []proc.Thread{p.thread} }

func (p *process) FindThread(id int) (proc.Thread, bool) { return p.thread, p.thread.id == id }

// WriteBreakpoint returns an error for the breakpoints that Delve sets on the panics of every Go program. Delve ignores the error.
func (p *process) WriteBreakpoint(*proc.Breakpoint) error { return errReadOnly }
func (p *process) EraseBreakpoint(*proc.Breakpoint) error { return errReadOnly }

// The methods of proc.ProcessGroup.
func (p *process) ContinueOnce(*proc.ContinueOnceContext) (proc.Thread, proc.StopReason, error) {
	return nil, proc.StopUnknown, errReadOnly
}
func (p *process) StepInstruction(int) error { return errReadOnly }
func (p *process) Detach(int, bool) error    { return nil }
func (p *process) Close() error              { return nil }

// memory is the target's memory.
type memory struct{ target machine.Memory }

func (m *memory) ReadMemory(p []byte, addr uint64) (int, error) {
	if err := m.target.ReadMemory(p, machine.Addr(addr)); err != nil {
		return 0, err
	}
	return len(p), nil
}

func (m *memory) WriteMemory(uint64, []byte) (int, error) { return 0, errReadOnly }

// thread is a thread as Delve sees it.
type thread struct {
	process   *process
	id        int
	registers registers
	common    proc.CommonThread
}

func (t *thread) ThreadID() int                          { return t.id }
func (t *thread) Registers() (proc.Registers, error)     { return t.registers, nil }
func (t *thread) BinInfo() *proc.BinaryInfo              { return t.process.info }
func (t *thread) ProcessMemory() proc.MemoryReadWriter   { return &t.process.memory }
func (t *thread) Common() *proc.CommonThread             { return &t.common }
func (t *thread) Breakpoint() *proc.BreakpointState      { return &proc.BreakpointState{} }
func (t *thread) SetCurrentBreakpoint(bool) error        { return nil }
func (t *thread) SoftExc() bool                          { return false }
func (t *thread) RestoreRegisters(proc.Registers) error  { return errReadOnly }
func (t *thread) SetReg(uint64, *op.DwarfRegister) error { return errReadOnly }

// registers holds the registers that Delve needs to find the goroutine of a thread.
type registers struct {
	pc machine.Addr
	g  machine.Addr // the running goroutine
}

func (r registers) PC() uint64                          { return uint64(r.pc) }
func (r registers) SP() uint64                          { return 0 }
func (r registers) BP() uint64                          { return 0 }
func (r registers) LR() uint64                          { return 0 }
func (r registers) TLS() uint64                         { return 0 }
func (r registers) GAddr() (uint64, bool)               { return uint64(r.g), true }
func (r registers) Copy() (proc.Registers, error)       { return r, nil }
func (r registers) Slice(bool) ([]proc.Register, error) { return nil, nil }
