package system

import (
	"fmt"
	"strconv"
	"strings"

	"example.com/reframe/internal/machine"
)

// MaxMappings bounds the number of mappings that are read. A process may have vm.max_map_count of them (65,530 by default).
const MaxMappings = 1 << 20

// ParseMaps reads the text of /proc/PID/maps (proc_pid_maps(5)).
func ParseMaps(text string) ([]machine.Mapping, error) {
	var maps []machine.Mapping
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		m, ok := ParseMapping(line)
		if !ok {
			return nil, fmt.Errorf("not a mapping: %q", line)
		}
		maps = append(maps, m)
		if len(maps) == MaxMappings {
			return nil, fmt.Errorf("over %d mappings", MaxMappings)
		}
	}
	return maps, nil
}

// ParseMapping reads a line "start-end perms offset major:minor inode   path".
func ParseMapping(line string) (m machine.Mapping, ok bool) {
	rest := line
	next := func() string {
		var word string
		word, rest, _ = strings.Cut(rest, " ")
		return word
	}
	from, to, _ := strings.Cut(next(), "-")
	perms, offset := next(), next()
	next()
	inode := next()
	m.Path = strings.TrimLeft(rest, " ")
	if len(perms) != 4 {
		return m, false
	}
	m.Read, m.Write, m.Exec, m.Share = perms[0] == 'r', perms[1] == 'w', perms[2] == 'x', perms[3] == 's'
	ok = true
	number := func(s string, base int) uint64 {
		v, err := strconv.ParseUint(s, base, 64)
		ok = ok && err == nil
		return v
	}
	m.Start, m.End = machine.Addr(number(from, 16)), machine.Addr(number(to, 16))
	m.Offset, m.Inode = number(offset, 16), number(inode, 10)
	return m, ok && m.Start < m.End
}
