package ptrace_test

import (
	"fmt"
	"log"

	"example.com/reframe/ptrace"
)

// A process is stopped for a fraction of a millisecond; the printed data is in the copy.
func ExampleCapture() {
	target, err := ptrace.Capture(4711, ptrace.Options{})
	if err != nil {
		log.Fatal(err) // it contains advice: root, ptrace_scope, a process that is gone
	}
	defer target.Close()
	fmt.Println(target.Command, "was stopped for", target.Pause)
	for _, thread := range target.Threads() {
		if thread.Registers == nil {
			fmt.Println(thread.ID, thread.Missing)
			continue
		}
		pc, err := thread.Registers.Addr(target.Arch().PC)
		fmt.Println(thread.ID, thread.Name, pc, err)
	}
}

// A core of any architecture can be read on any machine. The sysroot contains the files that the process had mapped.
func ExampleOpenCore() {
	target, err := ptrace.OpenCore("core.4711", ptrace.CoreOptions{Sysroot: "/srv/board"})
	if err != nil {
		log.Fatal(err)
	}
	defer target.Close()
	for _, m := range target.Modules {
		fmt.Println(m.Path, m.Why)
	}
}
