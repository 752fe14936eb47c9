package ptrace_test

import (
	"fmt"
	"log"

	"example.com/reframe/ptrace"
)

// The process is stopped for a fraction of a millisecond. The printed data is from the copy.
func ExampleCapture() {
	target, err := ptrace.Capture(4711, ptrace.Options{})
	if err != nil {
		log.Fatal(err) // the error contains advice, for example about root, ptrace_scope, or a process that has ended
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
