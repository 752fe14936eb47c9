package livetest

import (
	"bufio"
	"bytes"
	"debug/elf"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Stub is a program under QEMU that is controlled through QEMU's stub for gdb (gdb's manual, "GDB Remote Serial Protocol"). Its breakpoints are not
// visible in the program's memory.
type Stub struct {
	t       testing.TB
	cross   *Cross
	cmd     *exec.Cmd
	conn    net.Conn
	from    *bufio.Reader
	program string
	breaks  []uint64
	pc      uint64
	ended   bool
}

// pcNumber is the stub's number of the program counter (pc or pswa).
var pcNumber = map[string]int{"arm64": 32, "ppc64le": 64, "ppc64": 64, "riscv64": 32, "s390x": 1}

// Stub starts a program, stopped before its first instruction.
func (c *Cross) Stub(t testing.TB, program string, args ...string) *Stub {
	t.Helper()
	socket := filepath.Join(t.TempDir(), "gdb")
	cmd := c.command(t, []string{"-g", socket}, program, args...)
	cmd.Args = append([]string{Tool(t, "prlimit"), "--core=unlimited"}, cmd.Args...)
	cmd.Path = cmd.Args[0]
	require.NoError(t, startFromLastingThread(cmd))
	s := &Stub{t: t, cross: c, cmd: cmd, program: program}
	for deadline := time.Now().Add(Patience); ; time.Sleep(time.Millisecond) {
		conn, err := net.Dial("unix", socket)
		if err == nil {
			s.conn, s.from = conn, bufio.NewReader(conn)
			break
		}
		if time.Now().After(deadline) {
			s.Close()
			require.NoError(t, err, "%s", cmd)
		}
	}
	require.NoError(t, s.conn.SetDeadline(time.Now().Add(Patience)))
	s.do("qXfer:features:read:target.xml:0,ffb") // QEMU permits reads of single registers only after the client has read the description of the registers
	return s
}

// Close ends the program.
func (s *Stub) Close() {
	if s.conn != nil {
		s.conn.Close()
	}
	s.cmd.Process.Kill() // an error means that it has ended
	s.cmd.Wait()
}

// do sends a packet and returns the reply, or "" if the connection ends.
func (s *Stub) do(packet string) string {
	s.t.Helper()
	sum := byte(0)
	for _, b := range []byte(packet) {
		sum += b
	}
	_, err := fmt.Fprintf(s.conn, "$%s#%02x", packet, sum)
	require.NoError(s.t, err)
	if _, err := s.from.ReadString('$'); err != nil { // after the acknowledgement of the packet
		s.ended = true
		return ""
	}
	text, err := s.from.ReadString('#')
	require.NoError(s.t, err)
	_, err = s.from.Discard(2)
	require.NoError(s.t, err)
	_, err = s.conn.Write([]byte("+"))
	require.NoError(s.t, err)
	return strings.TrimSuffix(text, "#")
}

func (s *Stub) order(packet string) {
	s.t.Helper()
	require.Equal(s.t, "OK", s.do(packet), "%s of %s", packet, s.program)
}

// Break sets breakpoints.
func (s *Stub) Break(addrs ...uint64) {
	s.t.Helper()
	for _, a := range addrs {
		s.order(fmt.Sprintf("Z0,%x,4", a))
	}
	s.breaks = append(s.breaks, addrs...)
}

// Continue resumes the program, and returns the breakpoint at which it stopped. stopped is false if it has ended or got a signal.
func (s *Stub) Continue() (pc uint64, stopped bool) {
	s.t.Helper()
	if slices.Contains(s.breaks, s.pc) { // step over the breakpoint; otherwise the program hits it again at once
		s.order(fmt.Sprintf("z0,%x,4", s.pc))
		if !strings.HasPrefix(s.do("s"), "T05") {
			return 0, false
		}
		s.order(fmt.Sprintf("Z0,%x,4", s.pc))
		if s.where(); slices.Contains(s.breaks, s.pc) {
			return s.pc, true
		}
	}
	if !strings.HasPrefix(s.do("c"), "T05") {
		return 0, false
	}
	s.where()
	return s.pc, true
}

// where reads the program counter.
func (s *Stub) where() {
	s.t.Helper()
	s.pc = s.word(s.do(fmt.Sprintf("p%x", pcNumber[s.cross.Arch])))
}

// word decodes an eight-byte number in the program's byte order.
func (s *Stub) word(text string) uint64 {
	s.t.Helper()
	b, err := hex.DecodeString(text)
	require.NoError(s.t, err)
	require.Len(s.t, b, 8)
	if s.cross.Arch == "s390x" || s.cross.Arch == "ppc64" {
		return binary.BigEndian.Uint64(b)
	}
	return binary.LittleEndian.Uint64(b)
}

// Core ends the stopped program by a signal, and returns the path of its core. QEMU writes the core, or else Core writes it from the data of the
// stub. Core closes the stub.
func (s *Stub) Core() string {
	s.t.Helper()
	defer s.Close()
	if !s.cross.WritesCores() {
		return s.riscv64Core()
	}
	floats := s.floats()
	for packet := "C06"; !s.ended; packet = "c" { // the replies report the program's end
		s.do(packet)
	}
	s.cmd.Wait()
	cores, err := filepath.Glob(filepath.Join(s.cmd.Dir, "qemu_*.core"))
	require.NoError(s.t, err)
	require.Len(s.t, cores, 1, "%s", s.cmd)
	if len(floats) > 0 {
		s.addNote(cores[0], elf.NT_FPREGSET, floats)
	}
	return cores[0]
}

// floatNotes describes the registers of the stub that form NT_FPREGSET, and their offset in it: struct user_fpsimd_state, struct __riscv_d_ext_state,
// elf_fpregset_t of powerpc, s390_fp_regs.
var floatNotes = map[string]struct{ first, count, at, size int }{
	"arm64":   {34, 32, 0, 528},
	"ppc64le": {71, 32, 0, 264},
	"riscv64": {33, 32, 0, 264},
	"s390x":   {35, 16, 8, 136},
}

// floats returns the content of NT_FPREGSET from the stub's registers. It is empty for a machine that floatNotes lacks.
func (s *Stub) floats() []byte {
	s.t.Helper()
	about := floatNotes[s.cross.Arch]
	note := make([]byte, about.size)
	at := about.at
	for n := range about.count {
		b, err := hex.DecodeString(s.do(fmt.Sprintf("p%x", about.first+n)))
		require.NoError(s.t, err)
		at += copy(note[at:], b)
	}
	return note
}

// addNote adds a segment with a note to a core, and writes a new program header table at the end of the file. QEMU 7.2 writes only the notes of the
// general registers.
func (s *Stub) addNote(path string, kind elf.NType, content []byte) {
	s.t.Helper()
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	require.NoError(s.t, err)
	defer f.Close()
	core, err := elf.NewFile(f)
	require.NoError(s.t, err)
	end, err := f.Seek(0, io.SeekEnd)
	require.NoError(s.t, err)
	end = (end + 7) &^ 7

	var out bytes.Buffer
	put := func(v any) { require.NoError(s.t, binary.Write(&out, core.ByteOrder, v)) }
	put([3]uint32{5, uint32(len(content)), uint32(kind)})
	out.WriteString("CORE\x00\x00\x00\x00")
	out.Write(content)
	note := elf.Prog64{Type: uint32(elf.PT_NOTE), Off: uint64(end), Filesz: uint64(out.Len()), Align: 4}
	out.Write(make([]byte, -out.Len()&7))
	table := end + int64(out.Len())
	added := false
	for _, p := range core.Progs {
		put(elf.Prog64{Type: uint32(p.Type), Flags: uint32(p.Flags), Off: p.Off, Vaddr: p.Vaddr, Paddr: p.Paddr, Filesz: p.Filesz, Memsz: p.Memsz, Align: p.Align})
		if p.Type == elf.PT_NOTE && !added {
			added = true
			put(note)
		}
	}
	require.True(s.t, added)
	_, err = f.WriteAt(out.Bytes(), end)
	require.NoError(s.t, err)
	out.Reset()
	put(uint64(table))
	_, err = f.WriteAt(out.Bytes(), 32) // e_phoff
	require.NoError(s.t, err)
	out.Reset()
	put(uint16(len(core.Progs) + 1))
	_, err = f.WriteAt(out.Bytes(), 56) // e_phnum
	require.NoError(s.t, err)
}

// riscv64Core writes a core from the data of the stub: the general and float registers, the static program's own memory and the stack.
func (s *Stub) riscv64Core() string {
	s.t.Helper()
	register := func(n int) uint64 { return s.word(s.do(fmt.Sprintf("p%x", n))) }
	status := make([]byte, 376)
	binary.LittleEndian.PutUint32(status[32:], 1)
	binary.LittleEndian.PutUint64(status[112:], s.pc)
	for n := 1; n < 32; n++ {
		binary.LittleEndian.PutUint64(status[112+8*n:], register(n))
	}
	file, err := elf.Open(s.program)
	require.NoError(s.t, err)
	defer file.Close()
	var memory []elf.Prog64
	var contents [][]byte
	keep := func(start uint64, data []byte, flags elf.ProgFlag) {
		size := uint64(len(data))
		memory = append(memory, elf.Prog64{Type: uint32(elf.PT_LOAD), Flags: uint32(flags), Vaddr: start, Filesz: size, Memsz: size, Align: 1})
		contents = append(contents, data)
	}
	for _, p := range file.Progs {
		if p.Type == elf.PT_LOAD {
			keep(p.Vaddr, s.read(p.Vaddr, p.Memsz), p.Flags)
		}
	}
	sp := binary.LittleEndian.Uint64(status[112+16:])
	keep(sp, s.read(sp, 8<<20), elf.PF_R|elf.PF_W) // up to the end of the stack
	return writeCore(s.t, status, s.floats(), memory, contents)
}

// read reads memory up to the first byte that cannot be read.
func (s *Stub) read(at, size uint64) (data []byte) {
	s.t.Helper()
	const most = 1 << 10
	for size > 0 {
		n := min(size, most-at%most)
		text := s.do("m" + strconv.FormatUint(at, 16) + "," + strconv.FormatUint(n, 16))
		if strings.HasPrefix(text, "E") && len(text) == 3 {
			break
		}
		b, err := hex.DecodeString(text)
		require.NoError(s.t, err)
		require.Len(s.t, b, int(n))
		data, at, size = append(data, b...), at+n, size-n
	}
	require.NotEmpty(s.t, data)
	return data
}

// Serve connects one other client to QEMU's stub while the program is stopped. It returns the path of a socket.
func (s *Stub) Serve() string {
	s.t.Helper()
	path := filepath.Join(s.t.TempDir(), "stub")
	l, err := net.Listen("unix", path)
	require.NoError(s.t, err)
	require.NoError(s.t, s.conn.SetDeadline(time.Time{}))
	go func() {
		defer l.Close()
		client, err := l.Accept()
		if err != nil {
			return
		}
		defer client.Close()
		go func() { _, _ = io.Copy(client, s.from) }() // ends with the stub's connection
		_, _ = io.Copy(s.conn, client)                 // ends with the client's connection
	}()
	return path
}
