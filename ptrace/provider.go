package ptrace

// Provider names the source of a target.
type Provider string

const (
	FromProcess Provider = "process" // a process that this program stopped
	FromCore    Provider = "core"
	FromRemote  Provider = "remote" // a process that a stub of gdb's remote serial protocol holds
	FromDelve   Provider = "delve"  // a process or a core that Delve's headless server holds
	FromGDB     Provider = "gdb"    // a process or core in gdb, if reframe runs inside gdb
	FromLLDB    Provider = "lldb"   // a process or core in lldb, if reframe runs inside lldb
)
