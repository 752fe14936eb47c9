package maps_test

import (
	bits "encoding/binary"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/deopt/stackmap"
	"example.com/reframe/test/clitest"
)

// section returns a file with maps in the layouts of other compilers. The tests of the writer compare it with bytes that were written by hand.
func section(t *testing.T, order bits.AppendByteOrder, blobs ...*stackmap.Blob) string {
	t.Helper()
	var b []byte
	for _, blob := range blobs {
		var err error
		b, err = stackmap.AppendBlob(b, order, blob)
		require.NoError(t, err)
	}
	return clitest.TempFile(t, "section", string(b))
}

// places returns a location of each kind. DWARF numbers 3 and 6 of x86-64 are rbx and rbp (System V psABI for AMD64, figure 3.36).
func places() []stackmap.Location {
	return []stackmap.Location{
		{Kind: stackmap.Register, Size: 8, Reg: 3},
		{Kind: stackmap.Direct, Size: 8, Reg: 6, Offset: -16},
		{Kind: stackmap.Indirect, Size: 4, Reg: 6, Offset: -24},
		{Kind: stackmap.Constant, Size: 8, Offset: -5},
		{Kind: stackmap.ConstantIndex, Size: 8, Offset: 1},
	}
}

// same requires that each location equals the element of places with its index.
func same(t *testing.T, record map[string]any) {
	t.Helper()
	var got []string
	for _, l := range clitest.Objects(t, record["locations"]) {
		got = append(got, fmt.Sprintln(l["kind"], l["register"], l["offset"], l["size"], l["constant"]))
	}
	require.Equal(t, []string{
		"Register rbx 0 8 <nil>\n", "Direct rbp -16 8 <nil>\n", "Indirect rbp -24 4 <nil>\n",
		"Constant <nil> -5 8 -5\n", "ConstantIndex <nil> 1 8 1311768467463790320\n",
	}, got)
}

// constants is a table of constants. Entry 1 is 1311768467463790320 in decimal.
var constants = []uint64{1 << 40, 0x123456789abcdef0}

// TestMapsDialects requires that each layout of a map is recognized by its bytes in both byte orders, and that the layout is named if the version
// does not determine it.
func TestMapsDialects(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		dialect stackmap.Dialect
		version int
		head    string
	}{
		{stackmap.V1, 1, "version 1 at +0x0"},
		{stackmap.V2, 2, "version 2 at +0x0"},
		{stackmap.V3, 3, "version 3 at +0x0"},
		{stackmap.V3, 1, "version 1 (layout v3) at +0x0"},
		{stackmap.V3, 2, "version 2 (layout v3) at +0x0"},
		{stackmap.YkOld, 3, "version 3 (layout yk-old) at +0x0"},
		{stackmap.Yk, 3, "version 3 (layout yk) at +0x0"},
	} {
		t.Run(fmt.Sprintf("%s under %d", c.dialect, c.version), func(t *testing.T) {
			rec := stackmap.Record{ID: 77, Offset: 12, Locations: places(), LiveOuts: []stackmap.LiveOut{{Reg: 3, Size: 8}}}
			f := stackmap.BlobFunction{Addr: 0x401000, StackSize: 24}
			if c.dialect == stackmap.Yk || c.dialect == stackmap.YkOld {
				rec.Vars = []int{2, 3}
			}
			if c.dialect == stackmap.Yk {
				rec.Extra = [][]int16{{3, -40}, nil, nil, nil, nil}
				f.Prologue = &stackmap.Prologue{HasFramePointer: true, Saved: []stackmap.SavedRegister{{Reg: 3, Offset: -3}}}
			}
			f.Records = []stackmap.Record{rec}
			blob := &stackmap.Blob{Version: c.version, Dialect: c.dialect, Constants: constants, Functions: []stackmap.BlobFunction{f}}
			path := section(t, bits.LittleEndian, blob)
			images := mapsOf(t, path, "--arch", "amd64")
			require.Len(t, images, 1)
			require.Equal(t, string(c.dialect), images[0]["dialect"])
			require.NotContains(t, images[0], "also")
			functions := clitest.Objects(t, images[0]["functions"])
			require.Len(t, functions, 1)
			require.Equal(t, "0x401000", functions[0]["address"])
			require.Equal(t, "24", fmt.Sprint(functions[0]["stack_size"]))
			records := clitest.Objects(t, functions[0]["records"])
			require.Len(t, records, 1)
			require.Equal(t, "77", fmt.Sprint(records[0]["id"]))
			require.Equal(t, "0x40100c", records[0]["address"])
			same(t, records[0])
			require.Equal(t, "rbx", clitest.Objects(t, records[0]["live_outs"])[0]["register"])

			r := clitest.Run(t, "maps", path, "--arch", "amd64")
			require.Equal(t, 0, r.Code, r.Stderr)
			require.Contains(t, r.Stdout, "  map 0: "+c.head+", 1 function, 2 large constants, 1 record\n")

			// The other byte order is recognized without a flag.
			big := mapsOf(t, section(t, bits.BigEndian, blob))
			require.Equal(t, string(c.dialect), big[0]["dialect"])
			require.Equal(t, "0x401000", clitest.Objects(t, big[0]["functions"])[0]["address"])

			// Two maps in one section are recognized too.
			twice := mapsOf(t, section(t, bits.LittleEndian, blob, blob), "--arch", "amd64")
			require.Len(t, clitest.Objects(t, twice[0]["maps"]), 2)
			require.Len(t, clitest.Objects(t, twice[0]["functions"]), 2)
			same(t, clitest.Objects(t, clitest.Objects(t, twice[0]["functions"])[1]["records"])[0])
		})
	}
}

// TestMapsOfYk requires that the parts of maps that only the yk layouts have are shown.
func TestMapsOfYk(t *testing.T) {
	t.Parallel()
	rec := stackmap.Record{ID: 77, Offset: 12, Locations: places(), Vars: []int{2, 0, 3}, Extra: [][]int16{{3, -40}, nil, nil, nil, nil}}
	path := section(t, bits.LittleEndian, &stackmap.Blob{Version: 3, Dialect: stackmap.Yk, Constants: constants, Functions: []stackmap.BlobFunction{
		{Addr: 0x401000, StackSize: 24, Records: []stackmap.Record{rec}, Prologue: &stackmap.Prologue{
			HasFramePointer: true, Saved: []stackmap.SavedRegister{{Reg: 3, Offset: -3}, {Reg: 14, Offset: 2}},
		}},
		{Addr: 0x402000, StackSize: stackmap.DynamicStack, Prologue: &stackmap.Prologue{}},
	}})
	functions := clitest.Objects(t, mapsOf(t, path, "--arch", "amd64")[0]["functions"])
	require.Len(t, functions, 2)
	prologue := functions[0]["prologue"].(map[string]any)
	require.Equal(t, true, prologue["frame_pointer"])
	saved := clitest.Objects(t, prologue["saved"])
	require.Len(t, saved, 2)
	require.Equal(t, "rbx 3 -3", fmt.Sprint(saved[0]["register"], " ", saved[0]["dwarf"], " ", saved[0]["offset"]))
	require.Equal(t, "r14 14 2", fmt.Sprint(saved[1]["register"], " ", saved[1]["dwarf"], " ", saved[1]["offset"]))
	require.Equal(t, map[string]any{"frame_pointer": false, "saved": []any{}}, functions[1]["prologue"])
	require.NotContains(t, functions[1], "stack_size")
	locations := clitest.Objects(t, clitest.Objects(t, functions[0]["records"])[0]["locations"])
	var variables []string
	for _, l := range locations {
		variables = append(variables, fmt.Sprint(l["variable"]))
	}
	require.Equal(t, []string{"0", "0", "2", "2", "2"}, variables)
	require.Equal(t, "[3 -40]", fmt.Sprint(locations[0]["extra"]))
	require.NotContains(t, locations[1], "extra")

	r := clitest.Run(t, "maps", path, "--arch", "amd64")
	require.Equal(t, 0, r.Code, r.Stderr)
	require.Contains(t, r.Stdout, "prologue: a frame pointer, saves rbx-3 r14+2\n")
	require.Regexp(t, `(?m)^  \(no symbol\) at 0x402000, stack dynamic\n    prologue: no frame pointer`, r.Stdout)
	require.Regexp(t, `(?s)variable 0, 2 locations\n +#0 .*\n +#1 .*variable 1, 0 locations\n.*variable 2, 3 locations\n +#2 `, r.Stdout)
	// A value may have further places: a register, shown by its name, and a slot of the frame.
	also := regexp.MustCompile(`#0 .* also (.*)\n`).FindStringSubmatch(r.Stdout)
	require.NotNil(t, also, r.Stdout)
	require.Contains(t, also[1], "rbx")
	require.Contains(t, also[1], "-40")
}

// TestMapsOfVersion1WithSeveralFunctions requires that no function is shown for such a map, because it does not assign its records to functions.
func TestMapsOfVersion1WithSeveralFunctions(t *testing.T) {
	t.Parallel()
	path := section(t, bits.LittleEndian, &stackmap.Blob{Version: 1, Dialect: stackmap.V1, Constants: constants,
		Functions:    []stackmap.BlobFunction{{Addr: 0x401000, StackSize: 24}, {Addr: 0x402000, StackSize: 40}},
		Unattributed: []stackmap.Record{{ID: 77, Offset: 12, Locations: places()}, {ID: 78, Offset: 20}}})
	functions := clitest.Objects(t, mapsOf(t, path, "--arch", "amd64")[0]["functions"])
	require.Len(t, functions, 3)
	for n, address := range []string{"0x401000", "0x402000"} {
		require.Equal(t, address, functions[n]["address"])
		require.Empty(t, functions[n]["records"])
	}
	require.Equal(t, true, functions[2]["unattributed"])
	require.NotContains(t, functions[2], "address")
	records := clitest.Objects(t, functions[2]["records"])
	require.Len(t, records, 2)
	same(t, records[0])
	for _, rec := range records {
		require.NotContains(t, rec, "address")
	}
	r := clitest.Run(t, "maps", path)
	require.Equal(t, 0, r.Code, r.Stderr)
	require.Contains(t, r.Stdout, "does not assign its records to them\n    record 77 at +0xc, 5 locations\n")
	require.NotContains(t, r.Stdout, "(0x401") // no record has an address
	// A record can be found by its id, although it has no address.
	require.Equal(t, 0, clitest.Run(t, "maps", path, "--record", "78").Code)
	clitest.Run(t, "maps", path, "--address", "0x40100c").Fails(t, 1, "none of its 2 records matches the filters")
}

// TestMapsOfMixedDialects requires that maps of several layouts in one section are each recognized.
func TestMapsOfMixedDialects(t *testing.T) {
	t.Parallel()
	function := []stackmap.BlobFunction{{Addr: 0x401000, StackSize: 24, Records: []stackmap.Record{{ID: 77, Locations: places()}}}}
	old := &stackmap.Blob{Version: 2, Dialect: stackmap.V2, Constants: constants, Functions: function}
	now := &stackmap.Blob{Version: 3, Dialect: stackmap.V3, Constants: constants, Functions: function}
	images := mapsOf(t, section(t, bits.LittleEndian, old, now, old), "--arch", "amd64")
	require.NotContains(t, images[0], "dialect") // without a site, no layout can be recognized
	var got []string
	for _, m := range clitest.Objects(t, images[0]["maps"]) {
		got = append(got, fmt.Sprint(m["version"], " ", m["dialect"]))
	}
	require.Equal(t, []string{"2 v2", "3 v3", "2 v2"}, got)
	for _, f := range clitest.Objects(t, images[0]["functions"]) {
		same(t, clitest.Objects(t, f["records"])[0])
	}
}

// ambiguous returns a map with one live variable of one location. The location has 13 bytes, where v3 has 12, and both are padded to 16. Read as v3,
// the count becomes the kind, and the kind is in a reserved byte, so yk-old is the better reading.
func ambiguous(t *testing.T) string {
	t.Helper()
	return section(t, bits.LittleEndian, &stackmap.Blob{Version: 3, Dialect: stackmap.YkOld, Functions: []stackmap.BlobFunction{
		{Addr: 0x401000, StackSize: 24, Records: []stackmap.Record{{ID: 77, Vars: []int{1},
			Locations: []stackmap.Location{{Kind: stackmap.Register, Size: 8, Reg: 3}}}}},
	}})
}

func TestMapsAmbiguous(t *testing.T) {
	t.Parallel()
	path := ambiguous(t)
	images := mapsOf(t, path, "--arch", "amd64")
	require.Equal(t, "yk-old", images[0]["dialect"])
	require.Equal(t, []any{"v3"}, images[0]["also"])
	r := clitest.Run(t, "maps", path)
	require.Equal(t, 0, r.Code, r.Stderr)
	require.Contains(t, r.Stdout, "the section also fits layout v3 to the last byte; choose with --dialect\n")

	// Either layout can be chosen, with a note about the other.
	for dialect, c := range map[string]struct{ other, kind, register, size string }{
		"yk-old": {"v3", "Register", "rbx", "8"},
		// v3 takes the count byte, the first of 01 01 00 08 00 03 00 00 00 00 00 00, as the kind: kind 1, a reserved byte, size 0x0800, register
		// 0x0300, reserved, offset 0.
		"v3": {"yk-old", "Register", "dwarf register 768", "2048"},
	} {
		images := mapsOf(t, path, "--arch", "amd64", "--dialect", dialect)
		require.Equal(t, dialect, images[0]["dialect"])
		require.Equal(t, []any{c.other}, images[0]["also"])
		l := clitest.Objects(t, clitest.Objects(t, clitest.Objects(t, images[0]["functions"])[0]["records"])[0]["locations"])[0]
		require.Equal(t, c.kind, l["kind"])
		require.Equal(t, c.size, fmt.Sprint(l["size"]))
		require.Contains(t, l["register"], c.register[strings.LastIndex(c.register, " ")+1:])
	}
}

// TestMapsDialectForced requires that a layout which does not fit is rejected, and that the error names the one that does. A layout that fits has the
// same result as no flag.
func TestMapsDialectForced(t *testing.T) {
	t.Parallel()
	object := compiled(t, large("alpha", 1, 1<<40), "x86_64-linux-gnu")
	plain := mapsOf(t, object)
	require.Equal(t, plain, mapsOf(t, object, "--dialect", "v3"))
	for _, dialect := range []string{"v1", "v2", "yk", "yk-old"} {
		r := clitest.Run(t, "maps", object, "--dialect", dialect)
		r.FailsEmpty(t, 2, "as layout "+dialect+": ")
		require.Contains(t, r.Stderr, "layout v3 fits")
	}
	// With -stackmap-version llc changes only the number in the header, not the layout.
	for version := 1; version <= 2; version++ {
		object := compiled(t, large("alpha", 1, 1<<40), "x86_64-linux-gnu", fmt.Sprintf("-stackmap-version=%d", version))
		images := mapsOf(t, object)
		require.Equal(t, "v3", images[0]["dialect"])
		require.Equal(t, fmt.Sprint(version), fmt.Sprint(clitest.Objects(t, images[0]["maps"])[0]["version"]))
		require.Equal(t, plain[0]["functions"], images[0]["functions"])
	}
}
