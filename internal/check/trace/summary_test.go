package trace

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/reframe/deopt"
	"example.com/reframe/internal/machine"
)

// TestSummaryOfUnnamed requires that places without a name are distinguished by their addresses, and that the places of one function are counted
// together.
func TestSummaryOfUnnamed(t *testing.T) {
	c := &counts{sites: map[SiteCount]uint64{}, hits: map[machine.Addr]uint64{}}
	caller := func(pc machine.Addr) *deopt.Frame {
		return (&deopt.View{}).FrameAt(nil, pc, nil)
	}
	named := &Tracepoint{Addr: 0x1008, Function: "_ZN2ns1fEi", Offset: 8, Record: 7, Site: "stackmap"}
	for _, x := range []*Exited{
		{Point: named}, {Point: named},
		{Point: &Tracepoint{Addr: 0x2008, Offset: 8, Record: 7, Site: "stackmap"}},
		{Point: &Tracepoint{Addr: 0x2010, Offset: 16, Record: 7, Site: "stackmap"}},
		{Point: &Tracepoint{Addr: 0x3008, Offset: 8, Record: 7, Site: "stackmap"}},
		{Point: &Tracepoint{Addr: 0x9000, Symbol: "callee", Function: "callee"}, Frame: caller(0x4001)},
	} {
		c.count(x)
	}
	s := c.summary(time.Second)
	for n := range s.Sites {
		s.Sites[n].start = 0
	}
	require.Equal(t, []SiteCount{
		{Function: "_ZN2ns1fEi", Demangled: "ns::f(int)", Offset: 8, Record: 7, Site: "stackmap", Count: 2},
		{Address: "0x2008", Offset: 8, Record: 7, Site: "stackmap", Count: 1},
		{Address: "0x2010", Offset: 16, Record: 7, Site: "stackmap", Count: 1},
		{Address: "0x3008", Offset: 8, Record: 7, Site: "stackmap", Count: 1},
		{Address: "0x4001", Count: 1},
	}, s.Sites)
	require.Equal(t, []FunctionCount{
		{Address: "0x2000", Count: 2},
		{Function: "_ZN2ns1fEi", Demangled: "ns::f(int)", Count: 2},
		{Address: "0x3000", Count: 1},
		{Address: "0x4001", Count: 1},
	}, s.Functions)
}
