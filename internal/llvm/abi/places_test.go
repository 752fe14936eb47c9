package abi

import (
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/internal/llvm/ir"
	"example.com/reframe/internal/machine"
	"example.com/reframe/test/livetest"
)

// entered is a program that prints the registers and the top of the stack at each entry to a callee.
const entered = `
#include <stdio.h>
extern void (*functions[])(void); extern long count;
unsigned char state[8 * 16 + 16 * 8 + 512] __attribute__((aligned(16)));
#ifdef __x86_64__
__asm__(".text\n.globl dump\ndump: lea state(%rip), %rax\n"
	"mov %rdi, (%rax); mov %rsi, 8(%rax); mov %rdx, 16(%rax); mov %rcx, 24(%rax); mov %r8, 32(%rax); mov %r9, 40(%rax); mov %rsp, 48(%rax)\n"
	"movaps %xmm0, 128(%rax); movaps %xmm1, 144(%rax); movaps %xmm2, 160(%rax); movaps %xmm3, 176(%rax)\n"
	"movaps %xmm4, 192(%rax); movaps %xmm5, 208(%rax); movaps %xmm6, 224(%rax); movaps %xmm7, 240(%rax)\n"
	"xor %ecx, %ecx\n1: mov (%rsp,%rcx), %rdx; mov %rdx, 256(%rax,%rcx); add $8, %ecx; cmp $512, %ecx; jne 1b\nret");
#else
__asm__(".text\n.balign 4\n.globl dump\ndump: adrp x16, state\nadd x16, x16, :lo12:state\n"
	"stp x0, x1, [x16]\nstp x2, x3, [x16, 16]\nstp x4, x5, [x16, 32]\nstp x6, x7, [x16, 48]\nmov x17, sp\nstp x8, x17, [x16, 64]\n"
	"stp q0, q1, [x16, 128]\nstp q2, q3, [x16, 160]\nstp q4, q5, [x16, 192]\nstp q6, q7, [x16, 224]\n"
	"mov x0, 0\nadd x1, x16, 256\n1: ldr x2, [x17, x0]\nstr x2, [x1, x0]\nadd x0, x0, 8\ncmp x0, 512\nb.ne 1b\nret");
#endif
static void run(long k) {
	volatile unsigned char room[1024]; /* so that there is a stack of 512 bytes */
	room[0] = room[1023] = 0;
	functions[k]();
	for (unsigned i = 0; i < sizeof state; i++) printf("%02x", state[i]);
	puts("");
}
int main(void) { for (long k = 0; k < count; k++) run(k); }
`

// enteredState returns the registers and memory that the program above printed for one call.
func enteredState(t *testing.T, arch *machine.Arch, line string) (*machine.Registers, machine.Memory) {
	b, err := hex.DecodeString(line)
	require.NoError(t, err)
	regs := machine.NewRegisters(arch, "not printed")
	general := []machine.DWARFReg{dwRDI, dwRSI, dwRDX, dwRCX, dwR8, dwR9, dwRSP}
	vectors := dwXMM0
	if arch == machine.ARM64 {
		general, vectors = []machine.DWARFReg{0, 1, 2, 3, 4, 5, 6, 7, 8, machine.ARM64.SP}, 64
	}
	for i, r := range general {
		regs.Set(r, b[8*i:][:8])
	}
	for i := range 8 {
		regs.Set(vectors+machine.DWARFReg(i), b[128+16*i:][:16])
	}
	sp, err := regs.Addr(arch.SP)
	require.NoError(t, err)
	return regs, &stackAt{sp, b[256:]}
}

type stackAt struct {
	start machine.Addr
	bytes []byte
}

func (s *stackAt) ReadMemory(p []byte, addr machine.Addr) error {
	if addr < s.start || int(addr-s.start)+len(p) > len(s.bytes) {
		return fmt.Errorf("%v is not of the stack", addr)
	}
	copy(p, s.bytes[addr-s.start:])
	return nil
}

// argument is an argument of a call: as the IR writes it, and its expected value.
type argument struct{ typ, value, want string }

func randomArgument(r *rand.Rand, n int) argument {
	number := r.Uint64() >> r.IntN(60)
	integer := func(bits int) argument {
		v := number
		if bits < 64 {
			v &= 1<<bits - 1
		}
		return argument{fmt.Sprintf("i%d", bits), fmt.Sprint(v), fmt.Sprint(int64(v) << (64 - bits) >> (64 - bits))}
	}
	double := fmt.Sprintf("%d.5", n+1)
	switch r.IntN(14) {
	case 0:
		return integer(8)
	case 1:
		return integer(16)
	case 2, 3:
		return integer(32)
	case 4, 5:
		return integer(64)
	case 6:
		return integer(33)
	case 7:
		return argument{"ptr", fmt.Sprintf("inttoptr (i64 %d to ptr)", number>>8), fmt.Sprintf("%#x", number>>8)}
	case 8:
		return argument{"float", double, double}
	case 9, 10:
		return argument{"double", double, double}
	case 11:
		return argument{"i128", fmt.Sprintf("%d", number), fmt.Sprintf("%d", number)}
	case 12:
		return argument{"<4 x i32>", fmt.Sprintf("<i32 1, i32 -2, i32 3, i32 %d>", n), fmt.Sprintf("<1, -2, 3, %d>", n)}
	}
	return argument{"ptr byval({ i64, i64, i8 })", "@memory", "memory"}
}

// TestArgumentsAsNativeCodeGivesThem requires that arguments have the places that the code of each release uses. Only those that differ between releases may
// be unknown.
func TestArgumentsAsNativeCodeGivesThem(t *testing.T) {
	livetest.Slow(t)
	for _, c := range []struct {
		arch           *machine.Arch
		triple, layout string
	}{
		{machine.AMD64, "x86_64-pc-linux-gnu", "e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-f80:128-n8:16:32:64-S128"},
		{machine.ARM64, "aarch64-unknown-linux-gnu", "e-m:e-i8:8:32-i16:16:32-i64:64-i128:128-n32:64-S128"},
	} {
		for _, version := range []int{14, 16, 19, 22} {
			t.Run(fmt.Sprintf("%s/%d", c.arch.Name, version), func(t *testing.T) {
				requireArguments(t, c.arch, c.triple, c.layout, version)
			})
		}
	}
}

func requireArguments(t *testing.T, arch *machine.Arch, triple, layout string, version int) {
	r := rand.New(rand.NewPCG(19, uint64(version)))
	const functions = 150
	var text, table strings.Builder
	fmt.Fprintf(&text, "target datalayout = %q\ntarget triple = %q\n@memory = global { i64, i64, i8 } { i64 71, i64 72, i8 73 }\ndeclare void @dump()\n", layout, triple)
	calls := make([][]argument, functions)
	for k := range calls {
		var list []string
		for n := range r.IntN(16) {
			a := randomArgument(r, n)
			calls[k] = append(calls[k], a)
			list = append(list, a.typ+" "+a.value)
		}
		fmt.Fprintf(&text, "define void @f%d() {\n  call void @dump(%s)\n  ret void\n}\n", k, strings.Join(list, ", "))
		fmt.Fprintf(&table, ", ptr @f%d", k)
	}
	fmt.Fprintf(&text, "@functions = global [%d x ptr] [%s]\n@count = global i64 %d\n", functions, table.String()[2:], functions)
	lines := ran(t, arch, text.String(), version)
	require.Len(t, lines, functions)
	m, err := ir.Parse("calls.ll", []byte(text.String()))
	require.NoError(t, err)
	known, unknown := 0, map[string]int{}
	for k, list := range calls {
		body, err := m.Func(fmt.Sprintf("f%d", k)).Body()
		require.NoError(t, err)
		call := body[0].Instrs[0]
		s := Signature{Layout: m.Layout, Attrs: call.Call.ArgAttrs}
		for _, a := range call.Args {
			s.Types = append(s.Types, a.Type())
		}
		regs, stack := enteredState(t, arch, lines[k])
		got := Arguments(s, arch)
		require.Len(t, got, len(list))
		for n, a := range got {
			if a.Why != "" {
				unknown[list[n].typ+": "+a.Why]++
				continue
			}
			known++
			about := fmt.Sprintf("LLVM %d, argument %d, in %s, of %v", version, n+1, a.Where(), list)
			v, err := a.Read(regs, stack)
			require.NoError(t, err, about)
			if list[n].want != "memory" {
				require.Equal(t, list[n].want, v.Format(), about)
				continue
			}
			at, _ := v.Uint()
			b := make([]byte, 17)
			require.NoError(t, stack.ReadMemory(b, machine.Addr(at)), about)
			require.Equal(t, "4700000000000000480000000000000049", hex.EncodeToString(b), about)
		}
	}
	t.Logf("%d arguments read, not known: %v", known, unknown)
	require.Greater(t, known, 600)
	for why := range unknown { // only an i128, or an argument after one, has an unknown place
		require.Contains(t, why, "releases of LLVM pass it in different places")
		require.Equal(t, machine.AMD64, arch)
	}
}

// ran compiles and runs calls, and returns the state at the entry to each callee.
func ran(t *testing.T, arch *machine.Arch, text string, version int) []string {
	dir := t.TempDir()
	source, object, caller, program := filepath.Join(dir, "m.ll"), filepath.Join(dir, "m.o"), filepath.Join(dir, "c.c"), filepath.Join(dir, "c")
	require.NoError(t, os.WriteFile(source, []byte(text), 0o600))
	require.NoError(t, os.WriteFile(caller, []byte(entered), 0o600))
	args := []string{"-O1", "-filetype=obj", "-relocation-model=pic", "-o", object, source}
	if version == 14 {
		args = append(args, "-opaque-pointers")
	}
	out, err := exec.Command(livetest.LLVM(t, version, "llc"), args...).CombinedOutput()
	require.NoError(t, err, "%s", out)
	gcc, run := "gcc", []string{program}
	if arch == machine.ARM64 {
		gcc, run = "aarch64-linux-gnu-gcc", []string{livetest.Tool(t, "qemu-aarch64"), program}
	}
	out, err = exec.Command(livetest.Tool(t, gcc), "-static", "-o", program, caller, object).CombinedOutput()
	require.NoError(t, err, "%s", out)
	out, err = exec.Command(run[0], run[1:]...).CombinedOutput()
	require.NoError(t, err, "%s", out)
	return strings.Split(strings.TrimSpace(string(out)), "\n")
}

// TestArgumentsElsewhere requires that arguments that do not follow the C convention are not read.
func TestArgumentsElsewhere(t *testing.T) {
	for _, c := range []struct{ decl, want string }{
		{"declare ghccc void @f(i64)", "the calling convention ghccc"},
		{"declare void @f(ptr nest, i64)", "an attribute of a parameter changes the places of arguments"},
		{"declare void @f(i64, i64 inreg)", "an attribute of a parameter changes the places of arguments"},
		{"declare void @f({ i64, i64 })", "cannot tell where an argument of type { i64, i64 } is"},
		{"declare void @f(<8 x i32>)", "cannot tell where an argument of type <8 x i32> is"},
	} {
		m, err := ir.Parse("test.ll", []byte(c.decl))
		require.NoError(t, err)
		got := Arguments(SignatureOf(m.Funcs[0]), machine.AMD64)
		require.Equal(t, c.want, got[0].Why)
		_, err = got[0].Read(machine.NewRegisters(machine.AMD64, ""), nil)
		require.ErrorContains(t, err, c.want)
	}
	m, err := ir.Parse("test.ll", []byte("declare void @f(ptr sret(i64), i64)"))
	require.NoError(t, err)
	got := Arguments(SignatureOf(m.Funcs[0]), machine.ARM64)
	require.Equal(t, "x8", got[0].Where())
	require.Equal(t, "x0", got[1].Where())
	got = Arguments(SignatureOf(m.Funcs[0]), machine.AMD64)
	require.Equal(t, "rdi", got[0].Where())
	require.Equal(t, "rsi", got[1].Where())
	require.NotEmpty(t, Arguments(SignatureOf(m.Funcs[0]), machine.PPC64)[0].Why)
}
