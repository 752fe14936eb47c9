package remote

import (
	"encoding/hex"
	"encoding/xml"
	"fmt"
	"strconv"
	"strings"

	"example.com/reframe/internal/machine"
	"example.com/reframe/ptrace/holder"
	"example.com/reframe/ptrace/system"
)

// process reads what is known of the process as a whole. All of it is optional; notes say what is missing.
func (s *stub) process(out *holder.State) {
	if s.pid == 0 {
		s.pid = s.pidOfLLDB()
	}
	out.PID = s.pid
	if s.features["qXfer:auxv:read"] == "+" {
		out.Auxv, _ = s.transfer("auxv", "") // without it the program's entry point is unknown
	}
	s.canOpen = s.selectFiles()
	if s.canOpen && s.pid > 0 {
		if text, err := s.readFile(fmt.Sprintf("/proc/%d/maps", s.pid), maxText); err == nil {
			if maps, err := system.ParseMaps(string(text)); err == nil && len(maps) > 0 && ascending(maps) {
				out.Mappings = maps
			}
		}
		if text, err := s.readFile(fmt.Sprintf("/proc/%d/cmdline", s.pid), maxCommand); err == nil {
			out.Command = strings.TrimSpace(strings.ReplaceAll(string(text), "\x00", " "))
		}
	}
	for i := range out.Threads {
		if th := &out.Threads[i]; th.Name == "" && s.canOpen && i < maxNames {
			text, _ := s.readFile(fmt.Sprintf("/proc/%d/task/%d/comm", s.pid, th.ID), 64) // without it the thread has no name
			th.Name = strings.TrimSuffix(string(text), "\n")
		}
	}
	if out.Mappings == nil {
		out.Mappings = s.regions()
	}
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

// maxNames bounds the number of files that are read for names of threads.
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

// pidOfLLDB asks for the process as lldb does (qProcessInfo; "LLDB-specific extensions to the gdb-remote protocol").
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

// fields reads "name:value;name:value;".
func fields(reply []byte) map[string]string {
	out := map[string]string{}
	for item := range strings.SplitSeq(string(reply), ";") {
		if name, value, ok := strings.Cut(item, ":"); ok {
			out[name] = value
		}
	}
	return out
}

// regions lists the mappings as lldb does (qMemoryRegionInfo), or returns nil.
func (s *stub) regions() (maps []machine.Mapping) {
	for at := uint64(0); len(maps) < maxMappings; {
		reply, err := s.ask(fmt.Sprintf("qMemoryRegionInfo:%x", at))
		if err != nil || len(reply) == 0 || reply[0] == 'E' {
			return maps
		}
		f := fields(reply)
		start, err := strconv.ParseUint(f["start"], 16, 64)
		size, bad := strconv.ParseUint(f["size"], 16, 64)
		if err != nil || bad != nil || size == 0 || start > at || start+size <= at {
			return maps
		}
		if p := f["permissions"]; p != "" {
			name, _ := hex.DecodeString(f["name"])
			m := machine.Mapping{Start: machine.Addr(at), End: machine.Addr(start + size), Path: string(name),
				Read: strings.Contains(p, "r"), Write: strings.Contains(p, "w"), Exec: strings.Contains(p, "x")}
			maps = append(maps, m)
		}
		at = start + size
	}
	return maps
}
