package main

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/reframe/deopt/stackmap"
	"example.com/reframe/internal/machine"
	"example.com/reframe/internal/static/maps"
	"example.com/reframe/test/livetest"
)

// The targets. Most are fractions of llvm-readobj's time.
const (
	parsePart    = 0.1
	printPart    = 1.0 / 3
	jsonPart     = 1.0 // of the time in which llvm-readobj-22 prints text
	lookupNS     = 40
	residentPart = 1.5
)

// lookups is the number of addresses that are looked up in one run.
const lookups = 1 << 20

// readobjs are the measured releases of llvm-readobj. 19 is as fast as earlier releases; 22 prints the same three times as fast.
var readobjs = []int{19, 22}

// stackMaps measures reading and printing the stack maps of a file. llvm-readobj, with which it is compared, prints while it reads.
func (b *bench) stackMaps() {
	b.mapsOfSize(20_000, 20)
	b.mapsOfSize(1_000_000, 5)
}

// mapRun is the measurement of one file.
type mapRun struct {
	*bench
	path    string
	records int
	bytes   int // of the section
	rounds  int
}

func (b *bench) mapsOfSize(records, rounds int) {
	path := filepath.Join(b.TempDir(), "maps.o")
	m := &mapRun{b, path, records, mapFile(b, path, mapBlob(records)), rounds}
	b.section("Stack maps, %d records in %s, %d runs; ratio: our time to the peer's", records, mebibytes(int64(m.bytes)), rounds)
	rows := m.reading()
	rows = append(rows, m.lookup()...)
	b.print(append(rows, m.resident())...)
}

// reading compares the time until all records are in an index, or are printed.
func (m *mapRun) reading() []row {
	section := mapsOf(m, m.path)
	var inMemory, fromFile times
	runs := []func(){
		func() { inMemory.add(m.timed(func() { m.index(section) })) },
		func() { fromFile.add(m.timed(m.indexFile)) },
	}
	printed := func(pattern, tool string, args ...string) *times {
		m.printsAll(pattern, tool, args...)
		series := new(times)
		runs = append(runs, func() {
			o, text := m.startTo(nil, tool, args...)
			require.Zero(m, o.code, text)
			series.add(o.wall)
		})
		return series
	}
	peers := make([]*times, len(readobjs))
	for i, version := range readobjs {
		peers[i] = printed("\n  Record ID: ", livetest.LLVM(m, version, "llvm-readobj"), "--stackmap", m.path)
	}
	text := printed("\n    record ", m.reframe, "maps", m.path)
	llvm := printed("\n  Record ID: ", m.reframe, "maps", "--format=llvm", m.path)
	// JSON of a million records is not measured: each run would take nearly a minute, and show nothing more.
	var json *times
	if m.records < 100_000 {
		json = printed("\n              \"id\": ", m.reframe, "maps", "--json", m.path)
	}
	interleave(m.rounds, runs...)

	var rows []row
	compare := func(what string, ours times, part float64) {
		for i, version := range readobjs {
			r := against(what, fmt.Sprintf("llvm-readobj-%d", version), *peers[i], ours)
			r.theirs, r.ours = m.rate(*peers[i]), m.rate(ours)
			if part > 0 {
				r.target = fmt.Sprintf("at most %.2g: %s", part, verdict(float64(ours.median()) <= part*float64(peers[i].median())))
			}
			rows = append(rows, r)
			what = ""
		}
	}
	compare("parse + index, in memory", inMemory, parsePart)
	compare("parse + index, of the file", fromFile, parsePart)
	compare("reframe maps", *text, printPart)
	compare("reframe maps --format=llvm", *llvm, 0)
	if json != nil {
		compare("reframe maps --json", *json, jsonPart)
	}
	return rows
}

// rate formats a series, and the rate of its median in records a second.
func (m *mapRun) rate(s times) string {
	return fmt.Sprintf("%s, %.2f M/s", spread(s), float64(m.records)/s.median().Seconds()/1e6)
}

// timed returns how long f takes, after a collection of earlier garbage.
func (m *mapRun) timed(f func()) time.Duration {
	runtime.GC()
	began := time.Now()
	f()
	return time.Since(began)
}

// index parses a section and indexes all its records.
func (m *mapRun) index(section []byte) *stackmap.Index {
	s, err := stackmap.Parse(section, stackmap.Options{Order: machine.AMD64.Order})
	require.NoError(m, err)
	return m.indexOf(s)
}

func (m *mapRun) indexOf(s *stackmap.Section) *stackmap.Index {
	x := stackmap.NewIndex(s.Maps...)
	require.Equal(m, m.records, x.Len())
	return x
}

// indexFile parses and indexes the section in the file, which it opens as the commands do.
func (m *mapRun) indexFile() {
	maps, err := maps.OfFile(m.path, maps.Options{})
	require.NoError(m, err)
	defer maps.Close()
	require.Len(m, maps.Images, 1)
	require.NoError(m, maps.Images[0].Err)
	m.indexOf(maps.Images[0].Section)
}

// printsAll runs a tool once and requires that it prints all records. This also loads the files into the page cache.
func (m *mapRun) printsAll(pattern, tool string, args ...string) {
	c := counter{pattern: []byte(pattern)}
	o, text := m.startTo(&c, tool, args...)
	require.Zero(m, o.code, text)
	require.Equal(m, m.records, c.n, text)
}

// counter counts occurrences of a pattern in what is written to it.
type counter struct {
	pattern []byte
	tail    []byte // the last bytes written, one fewer than the pattern has
	n       int
}

func (c *counter) Write(p []byte) (int, error) {
	all := append(c.tail, p...)
	c.n += bytes.Count(all, c.pattern)
	c.tail = slices.Clone(all[max(0, len(all)-len(c.pattern)+1):])
	return len(p), nil
}

// lookup measures the lookup of records by their addresses, chosen at random.
func (m *mapRun) lookup() []row {
	x := m.index(mapsOf(m, m.path))
	all := x.Range(0, ^machine.Addr(0))
	require.Equal(m, m.records, all.Len())
	random := rand.New(rand.NewPCG(3, 3))
	addrs := make([]machine.Addr, lookups)
	for i := range addrs {
		addrs[i] = all.Entry(random.IntN(m.records)).Addr
	}
	measure := func(what string, find func(machine.Addr) int) row {
		var per series[float64]
		for range m.rounds {
			found := 0
			spent := m.timed(func() {
				for _, addr := range addrs {
					found += find(addr)
				}
			})
			require.Equal(m, lookups, found)
			per.add(float64(spent.Nanoseconds()) / lookups)
		}
		next := 0
		allocations := testing.AllocsPerRun(1000, func() { next += find(addrs[next]) })
		return row{
			what:   what,
			ours:   fmt.Sprintf("%.1f ns (%.1f to %.1f), %g allocations", per.median(), slices.Min(per), slices.Max(per), allocations),
			target: fmt.Sprintf("at most %d ns, 0 allocations: %s", lookupNS, verdict(per.median() <= lookupNS && allocations == 0)),
		}
	}
	return []row{
		measure("lookup by address", func(addr machine.Addr) int { return x.At(addr).Len() }),
		measure("lookup, and where it is", func(addr machine.Addr) int {
			if e := x.At(addr).Entry(0); e.Addr == addr && e.Function != nil {
				return 1
			}
			return 0
		}),
	}
}

// resident measures the memory that a section, its maps and their index use.
func (m *mapRun) resident() row {
	before := heap()
	x := m.index(mapsOf(m, m.path))
	used := heap() - before
	runtime.KeepAlive(x)
	part := float64(used) / float64(m.bytes)
	return row{
		what: "memory of section, maps, index", peer: "the section", theirs: mebibytes(int64(m.bytes)), ours: mebibytes(used),
		ratio: fmt.Sprintf("%.2f", part), target: fmt.Sprintf("at most %.1f: %s", residentPart, verdict(part <= residentPart)),
	}
}

// heap returns the number of bytes in heap spans that hold something reachable.
func heap() int64 {
	runtime.GC()
	runtime.GC() // the first collection may have started before the previous object was released
	var s runtime.MemStats
	runtime.ReadMemStats(&s)
	return int64(s.HeapInuse)
}
