package interp

import (
	"strings"

	"reframe/deopt/ir"
	"reframe/deopt/machine"
)

// statFuncs holds the functions that describe a file (POSIX <sys/stat.h>). On x86-64 there is one struct stat; on i386 there is another for large
// files.
var statFuncs = statTable()

func statTable() map[string]Builtin {
	table := map[string]Builtin{}
	for _, form := range []struct {
		suffix string
		large  bool
	}{{"", false}, {"64", true}} {
		status := named(0, func(c *ccall, at found) uint64 { return c.status(c.addr(1), at.node, form.large) })
		table["stat"+form.suffix], table["lstat"+form.suffix] = status, status // there are no links
		table["fstat"+form.suffix] = withFiles(func(c *ccall) uint64 {
			fd := c.int(0)
			file := c.file(fd)
			switch {
			case c.err != nil || file == nil && (fd < 0 || fd >= firstFile):
				return c.failed(errBadFile)
			case file == nil:
				return c.status(c.addr(1), &node{mode: modePipe | 0o600, number: uint64(fd), links: 1}, form.large)
			}
			return c.status(c.addr(1), file.node, form.large)
		})
	}
	return table
}

// statField is a field of struct stat: its offset and its bytes.
type statField struct{ at, size int }

// statLayout is a struct stat of glibc (bits/struct_stat.h of Linux on x86); its times are zero here.
type statLayout struct {
	size                                     uint64
	number, links, mode, length, block, full statField
	again                                    statField // the inode number once more
}

var (
	statWide   = statLayout{144, statField{8, 8}, statField{16, 8}, statField{24, 4}, statField{48, 8}, statField{56, 8}, statField{64, 8}, statField{}}
	statNarrow = statLayout{88, statField{12, 4}, statField{20, 4}, statField{16, 4}, statField{44, 4}, statField{48, 4}, statField{52, 4}, statField{}}
	statLarge  = statLayout{96, statField{12, 4}, statField{20, 4}, statField{16, 4}, statField{44, 8}, statField{52, 4}, statField{56, 8}, statField{88, 8}}
)

// status writes a struct stat.
func (c *ccall) status(to machine.Addr, n *node, large bool) uint64 {
	if triple := c.in.mods[0].Triple; triple != "" && !ir.I386(triple) && !strings.HasPrefix(triple, "x86_64") {
		c.fail(unsupported("how struct stat lies is known of x86", "@%s of a module for %s", c.Name, triple))
		return 0
	}
	l := statWide
	if c.longSize() == 4 {
		l = statNarrow
		if large {
			l = statLarge
		}
	}
	length := uint64(len(n.data))
	if n.is(modeDirectory) {
		length = pageSize
	}
	if length>>(8*l.length.size-1) != 0 {
		return c.failed(errOverflow)
	}
	c.fill(to, 0, l.size)
	for _, f := range []struct {
		statField
		v uint64
	}{
		{statField{0, 8}, 1}, {l.number, n.number}, {l.links, n.links}, {l.mode, n.mode}, {l.length, length},
		{l.block, pageSize}, {l.full, (length + 511) / 512}, {l.again, n.number},
	} {
		if f.size > 0 {
			c.put(to+machine.Addr(f.at), f.size, f.v)
		}
	}
	return 0
}
