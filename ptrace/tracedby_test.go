package ptrace

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestDenials requires that the error names the actual reason why a process cannot be traced. A capability must be reported as missing only if it is
// missing.
func TestDenials(t *testing.T) {
	t.Parallel()
	const (
		another   = "it belongs to another user; run as root, or with the capability CAP_SYS_PTRACE"
		never     = "kernel.yama.ptrace_scope is 3: nothing may be traced until this machine is started again"
		yama      = "; run as root, or let all of your processes be traced: sysctl kernel.yama.ptrace_scope=0"
		rootless  = "root lacks the capability CAP_SYS_PTRACE here (in a container: --cap-add=SYS_PTRACE), or the kernel protects this process"
		elsewhere = "the kernel protects this process, or it is of another user namespace, or traced from outside of this container, where the tracer cannot be seen"
		any       = "run as root, or with the capability CAP_SYS_PTRACE (in a container: --cap-add=SYS_PTRACE)"
	)
	for d, want := range map[denial]string{
		{foreign: true}:                            another,
		{foreign: true, scope: "1"}:                another,
		{foreign: true, root: true}:                rootless,
		{root: true, scope: "1"}:                   rootless,
		{root: true, capable: true}:                elsewhere,
		{root: true, capable: true, foreign: true}: elsewhere,
		{root: true, capable: true, scope: "1"}:    elsewhere,
		{root: true, capable: true, scope: "3"}:    never,
		{scope: "3"}:                               never,
		{scope: "1"}:                               "kernel.yama.ptrace_scope is 1" + yama,
		{scope: "2"}:                               "kernel.yama.ptrace_scope is 2" + yama,
		{scope: "0"}:                               any,
		{}:                                         any,
		{capable: true, scope: "1"}:                elsewhere,
		{capable: true, foreign: true}:             elsewhere,
		{capable: true, inner: true, root: true}:   "CAP_SYS_PTRACE of this user namespace does not permit it: the process is of another user namespace, or protected, or traced from outside of this container, where the tracer cannot be seen; run outside of the namespace",
		{undumpable: true, scope: "1"}:             "it is not dumpable (PR_SET_DUMPABLE of prctl(2)), for example because it ran a program that has more rights than its user, or that its user cannot read; run as root, or with the capability CAP_SYS_PTRACE",
		{stronger: true, root: true}:               "it has capabilities that this process lacks, and this process lacks CAP_SYS_PTRACE (in a container: --cap-add=SYS_PTRACE)",
		{self: true, scope: "3"}:                   "it is this process, which cannot trace itself",
		{filtered: true, scope: "3", root: true}:   "a filter of system calls (seccomp) denies ptrace to this process; in a container: --security-opt seccomp=unconfined",
	} {
		require.Equal(t, want, d.hint(), "%+v", d)
	}
}

// TestHolders requires that the error names the tracer, with advice for each kind of tracer.
func TestHolders(t *testing.T) {
	t.Parallel()
	for h, want := range map[tracedBy]string{
		{pid: 7, name: "gdb"}:    "process 7 (gdb) traces it already; have it detach, or write a core, (gdb) gcore FILE, and read that: reframe frames --core FILE",
		{pid: 7, name: "strace"}: "process 7 (strace) traces it already; have it detach first",
		{pid: 7, name: "rf-guard", whose: 6, does: "reframe trace -p 5"}: "process 7 (rf-guard) traces it already, the guard of process 6: reframe trace -p 5; end that first: kill 6",
		{pid: 7, name: "rf-guard"}:                                       "process 7 (rf-guard) traces it already, the guard of a reframe that has ended, is still restoring the code: try again",
	} {
		require.Equal(t, want, h.hint())
	}
}
