package machine

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/test/livetest"
)

// signalFrame describes the struct that the kernel pushes for a signal handler, as C source, because only the kernel's own sources define it. Its
// fields that hold registers have %d for the register number.
type signalFrame struct {
	arch     *Arch
	compiler string
	body     string
	at       string // the field that the stack pointer points to after the handler has returned
	general  string
	first    DWARFReg
	last     DWARFReg
	others   map[DWARFReg]string
	floating string // the floating-point registers, if they are saved; their numbers are 32 and on, or those of names
}

// signalFrames returns the signal frames for the trampolines of each architecture, in the same order.
func signalFrames() []signalFrame {
	const gp = "uc.uc_mcontext.gp_regs"
	ppc := signalFrame{
		arch: PPC64, compiler: "powerpc64-linux-gnu-gcc", body: "char below[128]; struct ucontext uc;", at: "0",
		general: gp + "[%d]", first: 0, last: 31,
		others:   map[DWARFReg]string{noNumber: gp + "[PT_NIP]", 65: gp + "[PT_LNK]", 66: gp + "[PT_CTR]", 76: gp + "[PT_XER]"},
		floating: "uc.uc_mcontext.fp_regs[%d]",
	}
	ppcQEMU := ppc
	ppcQEMU.body = "char below[144]; struct ucontext uc;"
	amd64 := signalFrame{
		arch: AMD64, compiler: "gcc", body: "char *pretcode; struct ucontext uc;", at: "offsetof(struct frame, uc)",
		general: "uc.uc_mcontext.r%d", first: 8, last: 15,
		others: map[DWARFReg]string{0: "uc.uc_mcontext.rax", 1: "uc.uc_mcontext.rdx", 2: "uc.uc_mcontext.rcx",
			3: "uc.uc_mcontext.rbx", 4: "uc.uc_mcontext.rsi", 5: "uc.uc_mcontext.rdi", 6: "uc.uc_mcontext.rbp",
			7: "uc.uc_mcontext.rsp", 16: "uc.uc_mcontext.rip"},
	}
	return []signalFrame{
		amd64, amd64,
		{
			arch: ARM64, compiler: "aarch64-linux-gnu-gcc", body: "siginfo_t info; struct ucontext uc;", at: "0",
			general: "uc.uc_mcontext.regs[%d]", first: 0, last: 30,
			others: map[DWARFReg]string{31: "uc.uc_mcontext.sp", 32: "uc.uc_mcontext.pc"},
		},
		ppc, ppcQEMU,
		{
			arch: RISCV64, compiler: "riscv64-linux-gnu-gcc", body: "siginfo_t info; struct ucontext uc;", at: "0",
			general: "uc) + offsetof(struct ucontext, uc_mcontext) + offsetof(struct user_regs_struct, pc) + 8*(%d", first: 1, last: 31,
			others:   map[DWARFReg]string{noNumber: "uc.uc_mcontext.sc_regs.pc"},
			floating: "uc.uc_mcontext.sc_fpregs.d.f[%d]",
		},
		{
			arch: S390X, compiler: "s390x-linux-gnu-gcc", at: "0",
			body:    "char used[__SIGNAL_FRAMESIZE]; unsigned short svc; siginfo_t info; struct ucontext_extended uc;",
			general: "uc.uc_mcontext.regs.gprs[%d]", first: 0, last: 15,
			others:   map[DWARFReg]string{65: "uc.uc_mcontext.regs.psw.addr"},
			floating: "uc.uc_mcontext.fpregs.fprs[%d]",
		},
		{
			arch: S390X, compiler: "s390x-linux-gnu-gcc", body: "char used[__SIGNAL_FRAMESIZE]; struct sigcontext sc; _sigregs sregs;", at: "0",
			general: "sregs.regs.gprs[%d]", first: 0, last: 15,
			others:   map[DWARFReg]string{65: "sregs.regs.psw.addr"},
			floating: "sregs.fpregs.fprs[%d]",
		},
	}
}

// TestTrampolines requires the offsets of registers that the kernel's user headers define.
func TestTrampolines(t *testing.T) {
	seen := map[*Arch]int{}
	for _, f := range signalFrames() {
		source := "#include <stddef.h>\n#include <linux/types.h>\n#include <asm/siginfo.h>\n#include <asm/signal.h>\n" +
			"#include <asm/ptrace.h>\n#include <asm/sigcontext.h>\n#include <asm/ucontext.h>\nstruct frame { " + f.body + " };\n"
		fields := map[DWARFReg]string{}
		for r := f.first; r <= f.last; r++ {
			fields[r] = fmt.Sprintf(f.general, r)
		}
		for _, r := range f.arch.Registers() {
			if info, _ := f.arch.Register(r); f.floating == "" || info.Class != Vector {
				continue
			} else if n, err := strconv.Atoi(strings.TrimPrefix(info.Name, "f")); f.arch == S390X && err == nil {
				fields[r] = fmt.Sprintf(f.floating, n)
			} else if f.arch != S390X && r >= 32 && r < 64 {
				fields[r] = fmt.Sprintf(f.floating, r-32)
			}
		}
		for r, field := range f.others {
			fields[r] = field
		}
		tramp := f.arch.Trampolines[seen[f.arch]]
		seen[f.arch]++
		require.Len(t, tramp.Saved, len(fields), f.arch.Name)
		for r, at := range tramp.Saved {
			require.Contains(t, fields, r)
			source += fmt.Sprintf("_Static_assert(offsetof(struct frame, %s) - %s == %d, \"%s\");\n",
				fields[r], f.at, at, f.arch.RegisterName(r))
		}
		path := filepath.Join(t.TempDir(), "frame.c")
		require.NoError(t, os.WriteFile(path, []byte(source), 0o644))
		run(t, "", livetest.Tool(t, f.compiler), "-fsyntax-only", "-std=gnu11", path)
	}
	for arch, n := range seen {
		require.Len(t, arch.Trampolines, n, arch.Name)
	}
	for same, arch := range map[*Arch]*Arch{ARM64BE: ARM64, PPC64LE: PPC64} {
		for i, tramp := range arch.Trampolines {
			require.Equal(t, tramp.Saved, same.Trampolines[i].Saved)
		}
	}
}

// TestTrampolineCode requires that the assembler encodes the instructions in the comments to the code of the trampolines.
func TestTrampolineCode(t *testing.T) {
	for arch, c := range map[*Arch]struct{ triple, source string }{
		AMD64:   {"x86_64", "mov $15, %rax\nsyscall\n"},
		ARM64:   {"aarch64", "mov x8, #139\nsvc #0\n"},
		ARM64BE: {"aarch64_be", "mov x8, #139\nsvc #0\n"},
		PPC64:   {"powerpc64", "addi 1, 1, 128\nli 0, 172\nsc\n"},
		PPC64LE: {"powerpc64le", "addi 1, 1, 128\nli 0, 172\nsc\n"},
		RISCV64: {"riscv64", "li a7, 139\necall\n"},
		S390X:   {"s390x", "svc 173\n"},
	} {
		object := filepath.Join(t.TempDir(), "a.o")
		run(t, c.source, livetest.LLVM(t, 19, "llvm-mc"), "-triple="+c.triple+"-linux-gnu", "-filetype=obj", "-o", object)
		require.Equal(t, textOf(t, object).data, arch.Trampolines[0].Code, arch.Name)
	}
	for _, arch := range []*Arch{PPC64, PPC64LE} {
		require.Equal(t, arch.Trampolines[0].Code[4:], arch.Trampolines[1].Code)
	}
	require.Equal(t, append([]byte{0xb8}, AMD64.Trampolines[0].Code[3:]...), AMD64.Trampolines[1].Code)              // mov $15, %eax
	require.Equal(t, append([]byte{0xb8, 15, 0, 0, 0}, AMD64.Trampolines[0].Code[7:]...), AMD64.Trampolines[1].Code) // mov $15,%eax
	require.Equal(t, []byte{0x0a, 119}, S390X.Trampolines[1].Code)                                                   // svc 119
}
