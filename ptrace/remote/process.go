package remote

import (
	"encoding/xml"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"example.com/reframe/internal/machine"
	"example.com/reframe/ptrace/holder"
	"example.com/reframe/ptrace/system"
)

// process reads the data about the whole process. All of this data is optional; notes list what is missing.
func (s *stub) process(out *holder.State) {
	out.PID, out.Auxv = s.pid, s.auxv
	if s.pid > 0 && s.selectFiles(0) { // open files as the stub does, because it numbers processes in its own namespace
		s.readProc(out)
	}
	s.canOpen = s.selectFiles(s.pid)
	if program := s.program(); program != "" {
		if out.Command == "" {
			out.Command = program
		}
		out.Program = program
	}
	if out.Mappings == nil {
		out.Files = s.libraries()
		out.Notes = append(out.Notes, "the stub does not list the process's memory: code that is in no file, and not registered, is found only with --object")
	}
}

// readProc reads the files of proc(5) about the process.
func (s *stub) readProc(out *holder.State) {
	text, err := s.readFile(fmt.Sprintf("/proc/%d/maps", s.pid), maxText)
	if err != nil {
		return
	}
	maps, err := system.ParseMaps(string(text))
	if err != nil || len(maps) == 0 || !ascending(maps) || !stacksIn(maps, out.Threads) {
		return // the process with this number on that machine is another one
	}
	out.Mappings = maps
	if text, err := s.readFile(fmt.Sprintf("/proc/%d/cmdline", s.pid), maxCommand); err == nil {
		out.Command = strings.TrimSpace(strings.ReplaceAll(string(text), "\x00", " "))
	}
	for i := range out.Threads {
		if th := &out.Threads[i]; th.Name == "" && i < maxNames {
			text, _ := s.readFile(fmt.Sprintf("/proc/%d/task/%d/comm", s.pid, th.ID), 64) // if it cannot be read, the thread has no name
			th.Name = strings.TrimSuffix(string(text), "\n")
		}
	}
}

// stacksIn reports whether the mappings contain the stack pointers of all threads.
func stacksIn(maps []machine.Mapping, threads []machine.Thread) bool {
	for _, th := range threads {
		if th.Registers == nil {
			continue
		}
		sp, err := th.Registers.Addr(th.Registers.Arch().SP)
		if err != nil || !slices.ContainsFunc(maps, func(m machine.Mapping) bool { return m.Contains(sp) }) {
			return false
		}
	}
	return true
}

// maxNames bounds the number of files from which names of threads are read.
const maxNames = 1 << 10

const maxCommand = 1 << 20

// ascending reports whether mappings are in ascending order and do not overlap.
func ascending(maps []machine.Mapping) bool {
	for i := 1; i < len(maps); i++ {
		if maps[i].Start < maps[i-1].End {
			return false
		}
	}
	return true
}

// program returns the path of the program, or "".
func (s *stub) program() string {
	if s.features["qXfer:exec-file:read"] != "+" {
		return ""
	}
	annex := ""
	if s.pid > 0 {
		annex = strconv.FormatInt(int64(s.pid), 16)
	}
	b, err := s.transfer("exec-file", annex)
	if err != nil || len(b) > maxPath {
		return ""
	}
	return string(b)
}

// maxPath is PATH_MAX of limits.h.
const maxPath = 4096

// libraries returns the files that the dynamic linker has loaded, without the program.
func (s *stub) libraries() (list []holder.File) {
	if s.features["qXfer:libraries-svr4:read"] != "+" {
		return nil
	}
	text, err := s.transfer("libraries-svr4", "")
	var all struct {
		Libraries []struct {
			Name string `xml:"name,attr"`
			Bias string `xml:"l_addr,attr"`
		} `xml:"library"`
	}
	if err != nil || xml.Unmarshal(text, &all) != nil {
		return nil
	}
	for _, l := range all.Libraries {
		bias, err := strconv.ParseUint(l.Bias, 0, 64)
		if err == nil && strings.HasPrefix(l.Name, "/") && len(l.Name) <= maxPath && len(list) < maxLibraries {
			list = append(list, holder.File{Path: l.Name, Bias: machine.Addr(bias)})
		}
	}
	return list
}

const maxLibraries = 1 << 12

// pidOfLLDB requests the number of the process as lldb does (qProcessInfo; "LLDB-specific extensions to the gdb-remote protocol").
func (s *stub) pidOfLLDB() int {
	reply, err := s.ask("qProcessInfo")
	if err != nil {
		return 0
	}
	pid, err := strconv.ParseUint(fields(reply)["pid"], 16, 31)
	if err != nil {
		return 0
	}
	return int(pid)
}

// fields parses "name:value;name:value;".
func fields(reply []byte) map[string]string {
	out := map[string]string{}
	for item := range strings.SplitSeq(string(reply), ";") {
		if name, value, ok := strings.Cut(item, ":"); ok {
			out[name] = value
		}
	}
	return out
}
