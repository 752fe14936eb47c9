package maps_test

import (
	bits "encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/deopt/stackmap"
	"example.com/reframe/internal/machine"
	"example.com/reframe/test/clitest"
	"example.com/reframe/test/livetest"
)

// large returns a function whose stackmap contains a constant that does not fit in 32 bits.
func large(name string, id int, constant uint64) string {
	return fmt.Sprintf(`declare void @llvm.experimental.stackmap(i64, i32, ...)
define void @%s(i64 %%a) {
  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 %d, i32 0, i64 %%a, i64 %d, i64 %d)
  ret void
}
`, name, id, constant, constant+1)
}

// three lists three objects, alpha, beta and gamma, with one function each. Their constants do not fit in 32 bits, so each object has a table of two
// constants.
var three = []struct {
	name     string
	id       int
	constant uint64
}{{"alpha", 1, 0x1111111111}, {"beta", 2, 0x2222222222}, {"gamma", 3, 0x3333333333}}

func threeObjects(t *testing.T, triple string, flags ...string) []string {
	t.Helper()
	var objects []string
	for _, o := range three {
		objects = append(objects, named(t, o.name+".o", compiled(t, large(o.name, o.id, o.constant), triple, flags...)))
	}
	return objects
}

// named returns a copy of a file with another base name.
func named(t *testing.T, name, path string) string {
	t.Helper()
	to := filepath.Join(filepath.Dir(path), name)
	require.NoError(t, os.Rename(path, to))
	return to
}

// own requires that a function is the n-th of three, with its own constants.
func own(t *testing.T, n int, function map[string]any) {
	t.Helper()
	require.Equal(t, three[n].name, function["name"])
	records := clitest.Objects(t, function["records"])
	require.Len(t, records, 1)
	require.Equal(t, fmt.Sprint(three[n].id), fmt.Sprint(records[0]["id"]))
	locations := clitest.Objects(t, records[0]["locations"])
	require.Len(t, locations, 3)
	for k := range 2 {
		require.Equal(t, "ConstantIndex", locations[1+k]["kind"])
		require.Equal(t, fmt.Sprint(three[n].constant+uint64(k)), locations[1+k]["constant"])
	}
}

// TestMapsOfSeveralObjects requires that all maps of a linked section are read. A linker concatenates the maps of its objects, and llvm-readobj reads
// only the first. Constant 0 differs in each.
func TestMapsOfSeveralObjects(t *testing.T) {
	t.Parallel()
	for triple, linkers := range map[string][]string{
		"x86_64-linux-gnu":  {"ld", "ld.lld-19"},
		"s390x-linux-gnu":   {"ld.lld-19"},
		"aarch64-linux-gnu": {"ld.lld-19"},
	} {
		t.Run(triple, func(t *testing.T) {
			t.Parallel()
			objects := threeObjects(t, triple, "-relocation-model=pic")
			for _, linker := range linkers {
				for _, way := range []string{"-no-pie", "-shared -z notext", "-r"} {
					path := filepath.Join(t.TempDir(), "linked")
					clitest.RunTool(t, linker, append(append(strings.Fields(way), "-e", "0", "-o", path), objects...)...)
					images := mapsOf(t, path)
					require.Len(t, images, 1)
					maps := clitest.Objects(t, images[0]["maps"])
					require.Len(t, maps, 3)
					functions := clitest.Objects(t, images[0]["functions"])
					require.Len(t, functions, 3)
					for n, f := range functions {
						require.Equal(t, fmt.Sprint(n), fmt.Sprint(f["map"]))
						require.Equal(t, "2", fmt.Sprint(maps[n]["constants"]))
						own(t, n, f)
					}
				}
			}
		})
	}
}

// TestMapsOfSection requires that the bytes of a linked section alone are read in either byte order.
func TestMapsOfSection(t *testing.T) {
	livetest.Slow(t)
	t.Parallel()
	for _, c := range []struct{ triple, arch, register string }{
		{"x86_64-linux-gnu", "amd64", "rdi"},
		{"s390x-linux-gnu", "s390x", "r2"},
		{"powerpc64-linux-musl", "ppc64", "r3"},
	} {
		t.Run(c.triple, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			whole, section := filepath.Join(dir, "linked"), filepath.Join(dir, "section")
			clitest.RunTool(t, "ld.lld-19", append([]string{"-e", "0", "-o", whole}, threeObjects(t, c.triple, "-relocation-model=pic")...)...)
			clitest.RunTool(t, "llvm-objcopy-19", "--dump-section", ".llvm_stackmaps="+section, whole, os.DevNull)
			want := clitest.Objects(t, mapsOf(t, whole)[0]["functions"])
			for _, args := range [][]string{{section}, {section, "--arch", c.arch}} {
				images := mapsOf(t, args...)
				require.Len(t, images, 1)
				require.Equal(t, "section", images[0]["format"])
				functions := clitest.Objects(t, images[0]["functions"])
				require.Len(t, functions, 3)
				for n, f := range functions {
					require.NotContains(t, f, "name") // a bare section has no symbols
					require.Equal(t, want[n]["address"], f["address"])
					f["name"] = three[n].name
					own(t, n, f)
				}
				first := clitest.Objects(t, clitest.Objects(t, functions[0]["records"])[0]["locations"])[0]
				if len(args) == 1 { // without --arch the architecture is unknown
					require.NotContains(t, images[0], "arch")
					require.NotContains(t, c.register, first["register"])
				} else {
					require.Equal(t, c.arch, images[0]["arch"])
					require.Equal(t, c.register, first["register"])
				}
			}
		})
	}
	// These are other common names of an architecture.
	object := threeObjects(t, "x86_64-linux-gnu")[0]
	section := filepath.Join(t.TempDir(), "section")
	clitest.RunTool(t, "llvm-objcopy-19", "--dump-section", ".llvm_stackmaps="+section, object, os.DevNull)
	for _, name := range []string{"amd64", "x86_64", "x86-64"} {
		require.Equal(t, "amd64", mapsOf(t, section, "--arch", name)[0]["arch"])
	}
}

// TestMapsOfArchive requires that maps shows the members of an archive that have maps, and skips the others.
func TestMapsOfArchive(t *testing.T) {
	livetest.Slow(t)
	t.Parallel()
	objects := threeObjects(t, "x86_64-linux-gnu")
	without := named(t, "without.o", compiled(t, "define void @plain() {\n  ret void\n}\n", "x86_64-linux-gnu"))
	const long = "a_member_with_a_name_of_more_than_fifteen_bytes.o"
	objects[1] = named(t, long, objects[1])
	members := append([]string{clitest.TempFile(t, "notes.txt", "an odd text"), without}, objects...)
	for _, archiver := range [][]string{
		{"llvm-ar-19", "rcs", "--format=gnu"}, {"llvm-ar-19", "rcs", "--format=bsd"}, {"llvm-ar-19", "rcs", "--format=darwin"},
		{"llvm-ar-19", "rcs", "--format=coff"}, {"ar", "rcs"}, {"ar", "rcS"},
	} {
		t.Run(strings.Join(archiver, " "), func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "lib.a")
			clitest.RunTool(t, archiver[0], append(append(archiver[1:len(archiver):len(archiver)], path), members...)...)
			images := mapsOf(t, path)
			require.Len(t, images, 3)
			for n, name := range []string{"alpha.o", long, "gamma.o"} {
				require.Equal(t, path+"("+name+")", images[n]["name"])
				require.Equal(t, "ELF object", images[n]["format"])
				functions := clitest.Objects(t, images[n]["functions"])
				require.Len(t, functions, 1)
				own(t, n, functions[0])
				require.Contains(t, clitest.Run(t, "maps", path).Stdout, path+"("+name+")  ELF object, x86-64\n")
			}
		})
	}
}

// TestMapsOfArchiveWithBrokenMember requires that an error in one member is reported with its name, and that the other members are shown.
func TestMapsOfArchiveWithBrokenMember(t *testing.T) {
	t.Parallel()
	objects := threeObjects(t, "x86_64-linux-gnu")
	broken := named(t, "broken.o", clitest.ChangedObject(t, objects[1], "beta.o", func(b []byte, at int) []byte { b[at] = 9; return b }))
	path := filepath.Join(t.TempDir(), "lib.a")
	clitest.RunTool(t, "ar", "rcS", path, objects[0], broken, objects[2])
	r := clitest.Run(t, "maps", path, "--json")
	require.Equal(t, 1, r.Code, r.Stderr)
	clitest.RequireValid(t, "maps.schema.json", r.Stdout)
	images := clitest.Objects(t, r.Object(t)["images"])
	require.Len(t, images, 3)
	require.Contains(t, images[1]["name"], "(broken.o)")
	require.Contains(t, images[1]["error"], "version 9")
	require.Empty(t, images[1]["functions"])
	own(t, 0, clitest.Objects(t, images[0]["functions"])[0])
	own(t, 2, clitest.Objects(t, images[2]["functions"])[0])

	r = clitest.Run(t, "maps", path)
	require.Equal(t, 1, r.Code, r.Stderr)
	for _, text := range []string{"(broken.o)", "version 9", "\n  alpha unlinked", "\n  gamma unlinked"} {
		require.Contains(t, r.Stdout, text)
	}
}

// TestMapsOfThinArchive requires the maps of the members of a thin archive, which contains only the names of its members.
func TestMapsOfThinArchive(t *testing.T) {
	t.Parallel()
	objects := threeObjects(t, "x86_64-linux-gnu")
	for _, archiver := range [][]string{{"ar", "rcsT"}, {"llvm-ar-19", "rcs", "--thin"}} {
		path := filepath.Join(filepath.Dir(objects[0]), strings.Join(archiver, "")+".a")
		clitest.RunTool(t, archiver[0], append(append(archiver[1:len(archiver):len(archiver)], path), objects...)...)
		clitest.Run(t, "maps", path).FailsEmpty(t, 2, "thin archive", "alpha.o")
	}
}

// TestMapsOfArchiveWithoutMaps requires that maps --require reports that an archive without maps, or without objects, has no stack map.
func TestMapsOfArchiveWithoutMaps(t *testing.T) {
	livetest.Slow(t)
	t.Parallel()
	without := compiled(t, "define void @plain() {\n  ret void\n}\n", "x86_64-linux-gnu")
	path := filepath.Join(t.TempDir(), "lib.a")
	clitest.RunTool(t, "ar", "rcs", path, without)
	clitest.Run(t, "maps", "--require", path).FailsEmpty(t, 1, "lib.a", "no stack map")
	texts := filepath.Join(t.TempDir(), "texts.a")
	clitest.RunTool(t, "ar", "rcs", texts, clitest.TempFile(t, "notes.txt", "an odd text"))
	r := clitest.Run(t, "maps", "--require", texts)
	r.FailsEmpty(t, 1, "texts.a", "no stack map")
	require.NotContains(t, r.Stderr, "section \n") // the archive has no format to name
}

// TestMapsOfSeveralSections requires that all maps are shown of an object with several sections of the same name, which a linker that does not merge
// sections leaves.
func TestMapsOfSeveralSections(t *testing.T) {
	t.Parallel()
	out := filepath.Join(t.TempDir(), "apart.o")
	clitest.RunTool(t, "ld", "-r", "--unique=.llvm_stackmaps", "-o", out,
		compiled(t, large("alpha", 1, 1<<40), "x86_64-linux-gnu"), compiled(t, large("beta", 2, 1<<41), "x86_64-linux-gnu"))
	images := mapsOf(t, out)
	require.Len(t, images, 2)
	for n, want := range []string{"alpha", "beta"} {
		require.Equal(t, fmt.Sprintf("%s (section %d of 2)", out, n+1), images[n]["name"])
		require.Equal(t, want, clitest.Objects(t, images[n]["functions"])[0]["name"])
	}
}

// TestMapsOfAliases requires that a function is shown with every name that its image gives it, and is found by each.
func TestMapsOfAliases(t *testing.T) {
	t.Parallel()
	module := large("worker", 1, 1<<40) + "@zalias = alias void (i64), ptr @worker\n@walias = weak alias void (i64), ptr @worker\n@local = internal alias void (i64), ptr @worker\n"
	object := compiled(t, module, "x86_64-linux-gnu", "-relocation-model=pic")
	linked := filepath.Join(t.TempDir(), "linked.so")
	clitest.RunTool(t, "ld.lld-19", "-shared", "-z", "notext", "-o", linked, object)
	ir := clitest.TempFile(t, "worker.ll", module)
	for _, file := range []string{object, linked} {
		f := clitest.Objects(t, mapsOf(t, file, "--ir", ir)[0]["functions"])[0]
		require.Equal(t, "worker", f["name"], "the module defines it under this name")
		require.ElementsMatch(t, []any{"zalias", "walias", "local"}, f["aliases"])
		for _, name := range []string{"worker", "zalias", "walias"} {
			require.Len(t, clitest.Objects(t, mapsOf(t, file, "--function", name)[0]["functions"]), 1)
		}
		r := clitest.Run(t, "maps", "--check", file, "--ir", ir)
		require.Equal(t, 0, r.Code, r.Stdout)
	}
}

// TestMapsOfManyRecords requires that records which several processors format are printed in the order of the section.
func TestMapsOfManyRecords(t *testing.T) {
	t.Parallel()
	const functions = 10_000
	blob := &stackmap.Blob{Version: 3, Dialect: stackmap.V3}
	var want []string
	for n := range functions {
		rec := stackmap.Record{ID: stackmap.RecordID(n), Locations: []stackmap.Location{{Kind: stackmap.Register, Size: 8, Reg: 3}}}
		blob.Functions = append(blob.Functions, stackmap.BlobFunction{Addr: machine.Addr(n * 16), Records: []stackmap.Record{rec}})
		want = append(want, fmt.Sprint(n))
	}
	data, err := stackmap.AppendBlob(nil, bits.LittleEndian, blob)
	require.NoError(t, err)
	r := clitest.Run(t, "maps", clitest.TempFile(t, "section", string(data)), "--arch", "amd64")
	require.Equal(t, 0, r.Code, r.Stderr)
	var got []string
	for _, m := range regexp.MustCompile(`(?m)^    record (\d+) at `).FindAllStringSubmatch(r.Stdout, -1) {
		got = append(got, m[1])
	}
	require.Equal(t, want, got)
	require.Equal(t, functions, strings.Count(r.Stdout, "  Register      rbx  "))
}
