package maps_test

import (
	"fmt"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/test/clitest"
	"example.com/reframe/test/livetest"
)

// compiled compiles a module with llc 19, or with llc 22 for loongarch64, for which llc 19 has no stack maps.
func compiled(t *testing.T, module, triple string, flags ...string) string {
	t.Helper()
	path := clitest.TempFile(t, "module.ll", module)
	object := strings.TrimSuffix(path, ".ll") + ".o"
	llc := "llc-19"
	if strings.HasPrefix(triple, "loongarch64") {
		llc = "llc-22"
	}
	clitest.RunTool(t, llc, append([]string{"-filetype=obj", "-mtriple=" + triple, path, "-o", object}, flags...)...)
	return object
}

// twoOfThree returns a module of three functions: one with one record, one without records, and one with two. For loongarch64, on which LLVM has no
// stackmaps, the records are those of statepoints.
func twoOfThree(triple string) string {
	site := func(id int) string {
		if strings.HasPrefix(triple, "loongarch64") {
			return fmt.Sprintf("call token (i64, i32, ptr, i32, i32, ...) @llvm.experimental.gc.statepoint.p0(i64 %d, i32 0,"+
				" ptr elementtype(void ()) @callee, i32 0, i32 0, i32 0, i32 0) [\"deopt\"(i64 %%a)]", id)
		}
		return fmt.Sprintf("call void (i64, i32, ...) @llvm.experimental.stackmap(i64 %d, i32 8, i64 %%a)", id)
	}
	return `declare void @llvm.experimental.stackmap(i64, i32, ...)
declare token @llvm.experimental.gc.statepoint.p0(i64 immarg, i32 immarg, ptr, i32 immarg, i32 immarg, ...)
define hidden void @callee() noinline {
  ret void
}
define void @first(i64 %a) gc "statepoint-example" {
  ` + site(11) + `
  ret void
}
define i64 @second(i64 %a, i64 %b) {
  %c = mul i64 %a, %b
  ret i64 %c
}
define void @third(i64 %a) gc "statepoint-example" {
  ` + site(21) + `
  ` + site(22) + `
  ret void
}
`
}

// nm returns the addresses, from llvm-nm, of functions with records of twoOfThree.
func nm(t *testing.T, path string) map[string]uint64 {
	t.Helper()
	all := map[string]uint64{}
	// The portable format of nm(1): name, type, value, size.
	for line := range strings.Lines(clitest.RunTool(t, "llvm-nm-19", "--defined-only", "--format=posix", path)) {
		field := strings.Fields(line)
		if source := strings.TrimPrefix(field[0], "_"); source == "first" || source == "third" {
			value, err := strconv.ParseUint(field[2], 16, 64)
			require.NoError(t, err, line)
			all[field[0]] = value
		}
	}
	require.Len(t, all, 2, path)
	return all
}

// offsets returns the instruction offsets, from llvm-readobj, of the records of twoOfThree.
func offsets(t *testing.T, object string) map[string]uint64 {
	t.Helper()
	all := map[string]uint64{}
	text := clitest.RunTool(t, "llvm-readobj-19", "--stackmap", object)
	for _, m := range regexp.MustCompile(`Record ID: (\d+), instruction offset: (\d+)`).FindAllStringSubmatch(text, -1) {
		n, err := strconv.ParseUint(m[2], 10, 32)
		require.NoError(t, err)
		all[m[1]] = n
	}
	require.Len(t, all, 3, text)
	return all
}

// mapsOf returns the images of a valid file from maps --json.
func mapsOf(t *testing.T, args ...string) []map[string]any {
	t.Helper()
	r := clitest.Run(t, append([]string{"maps", "--json"}, args...)...)
	require.Equal(t, 0, r.Code, "%v\n%s", args, r.Stderr)
	require.Empty(t, r.Stderr)
	clitest.RequireValid(t, "maps.schema.json", r.Stdout)
	images := clitest.Objects(t, r.Object(t)["images"])
	for _, i := range images {
		require.NotContains(t, i, "error")
	}
	return images
}

// hex formats a number as the JSON does.
func hex(n uint64) string { return fmt.Sprintf("%#x", n) }

// unlinked requires that an image of an object holds the records of twoOfThree, under the names from llvm-nm.
func unlinked(t *testing.T, image map[string]any, object string) {
	t.Helper()
	functions, at, names := clitest.Objects(t, image["functions"]), offsets(t, object), nm(t, object)
	require.Len(t, functions, 2)
	for n, ids := range [][]string{{"11"}, {"21", "22"}} {
		require.Contains(t, names, functions[n]["name"])
		require.Equal(t, []string{"first", "third"}[n], strings.TrimPrefix(functions[n]["name"].(string), "_"))
		require.NotContains(t, functions[n], "address")
		records := clitest.Objects(t, functions[n]["records"])
		require.Len(t, records, len(ids))
		for k, id := range ids {
			require.Equal(t, id, fmt.Sprint(records[k]["id"]))
			require.Equal(t, fmt.Sprint(at[id]), fmt.Sprint(records[k]["offset"]))
			require.NotContains(t, records[k], "address")
		}
	}
}

// linked requires that an image that was linked from an object holds its records at the addresses from llvm-nm.
func linked(t *testing.T, image map[string]any, path, object string) {
	t.Helper()
	address, at := nm(t, path), offsets(t, object)
	functions := clitest.Objects(t, image["functions"])
	require.Len(t, functions, 2)
	for n, ids := range [][]string{{"11"}, {"21", "22"}} {
		name := functions[n]["name"].(string)
		require.Contains(t, address, name)
		require.Equal(t, []string{"first", "third"}[n], strings.TrimPrefix(name, "_"))
		require.Equal(t, hex(address[name]), functions[n]["address"])
		records := clitest.Objects(t, functions[n]["records"])
		require.Len(t, records, len(ids))
		for k, id := range ids {
			require.Equal(t, id, fmt.Sprint(records[k]["id"]))
			require.Equal(t, hex(address[name]+at[id]), records[k]["address"])
		}
	}
}

// goArch returns Go's name for the architecture of a triple.
func goArch(t *testing.T, triple string) string {
	t.Helper()
	llvm, _, _ := strings.Cut(triple, "-")
	name, ok := map[string]string{
		"x86_64": "amd64", "aarch64": "arm64", "arm64": "arm64", "arm64e": "arm64", "arm64_32": "arm64", "aarch64_be": "arm64be",
		"powerpc64": "ppc64", "powerpc64le": "ppc64le", "riscv64": "riscv64", "s390x": "s390x", "loongarch64": "loong64",
	}[llvm]
	require.True(t, ok, triple)
	return name
}

// TestMapsOfObjects requires the right maps of unlinked objects for every target: ELF, Mach-O and COFF.
func TestMapsOfObjects(t *testing.T) {
	livetest.Slow(t)
	t.Parallel()
	formats := map[string]string{"linux": "ELF object", "unknown": "ELF object", "apple": "Mach-O object", "pc": "COFF object"}
	for _, target := range targets {
		t.Run(target.triple, func(t *testing.T) {
			t.Parallel()
			object := compiled(t, twoOfThree(target.triple), target.triple, target.flags...)
			images := mapsOf(t, object)
			require.Len(t, images, 1)
			require.Equal(t, formats[strings.Split(target.triple, "-")[1]], images[0]["format"])
			require.Equal(t, goArch(t, target.triple), images[0]["arch"])
			unlinked(t, images[0], object)

			r := clitest.Run(t, "maps", object)
			require.Equal(t, 0, r.Code, r.Stderr)
			for _, f := range clitest.Objects(t, images[0]["functions"]) {
				require.Contains(t, r.Stdout, fmt.Sprintf("\n  %s unlinked, stack ", f["name"]))
			}
		})
	}
}

// TestMapsOfLinkedELF requires the right addresses in ELF files that lld has linked for each architecture that it supports. The function addresses in
// the section are relocated in the file, or by a table of relocations in one of its forms.
func TestMapsOfLinkedELF(t *testing.T) {
	livetest.Slow(t)
	t.Parallel()
	ways := map[string]string{
		"no-pie": "-no-pie", "pie": "-pie -z notext", "shared": "-shared -z notext",
		"addends in place": "-pie -z notext --apply-dynamic-relocs", "relr": "-pie -z notext --pack-dyn-relocs=relr",
	}
	for _, target := range targets {
		triple := target.triple
		switch {
		case !strings.Contains(triple, "linux") || triple == "x86_64-linux-gnux32":
			continue
		case triple == "powerpc64-linux-gnu":
			triple = "powerpc64-linux-musl" // lld does not support function descriptors
		}
		t.Run(triple, func(t *testing.T) {
			t.Parallel()
			object := compiled(t, twoOfThree(triple), triple, append([]string{"-relocation-model=pic"}, target.flags...)...)
			for way, flags := range ways {
				path := filepath.Join(t.TempDir(), "linked")
				clitest.RunTool(t, "ld.lld-19", append(strings.Fields(flags), "-e", "0", "-o", path, object)...)
				images := mapsOf(t, path)
				require.Len(t, images, 1, way)
				require.Equal(t, goArch(t, triple), images[0]["arch"])
				linked(t, images[0], path, object)
				if way == "no-pie" {
					require.Equal(t, "ELF executable", images[0]["format"])
				}
			}
		})
	}
}

// TestMapsOfLinkedByGNU requires the right maps of files that GNU ld has linked, before and after strip.
func TestMapsOfLinkedByGNU(t *testing.T) {
	livetest.Slow(t)
	t.Parallel()
	object := compiled(t, twoOfThree("x86_64-linux-gnu"), "x86_64-linux-gnu", "-relocation-model=pic")
	at := offsets(t, object)
	for _, way := range []string{"-no-pie", "-pie -z notext", "-shared -z notext"} {
		t.Run(way, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "linked")
			clitest.RunTool(t, "ld", append(strings.Fields(way), "-e", "0", "-o", path, object)...)
			images := mapsOf(t, path)
			require.Len(t, images, 1)
			linked(t, images[0], path, object)

			address := nm(t, path)
			r := clitest.Run(t, "maps", path)
			require.Contains(t, r.Stdout, fmt.Sprintf("\n  first at %#x, stack ", address["first"]))
			require.Contains(t, r.Stdout, fmt.Sprintf("(%#x)", address["third"]+at["22"]))

			clitest.RunTool(t, "llvm-strip-19", "--strip-all", path)
			text := clitest.Run(t, "maps", path).Stdout
			for n, f := range clitest.Objects(t, mapsOf(t, path)[0]["functions"]) {
				name := []string{"first", "third"}[n]
				require.Equal(t, hex(address[name]), f["address"])
				if way == "-shared -z notext" { // only exported functions have names
					require.Equal(t, name, f["name"])
					continue
				}
				require.NotContains(t, f, "name")
				require.Contains(t, text, fmt.Sprintf("\n  (no symbol) at %#x, stack ", address[name]))
			}
		})
	}
}

// TestMapsOfMachO requires the right maps of Mach-O images, whose addresses are in chains of fixups or in a table of rebases, and of a universal file
// that contains several images.
func TestMapsOfMachO(t *testing.T) {
	livetest.Slow(t)
	t.Parallel()
	var archs, slices, objects []string
	for arch, triple := range map[string]string{"x86_64": "x86_64-apple-macosx10.15", "arm64": "arm64-apple-macosx11"} {
		object := compiled(t, twoOfThree(triple), triple)
		for _, way := range []string{"-dylib -fixup_chains", "-dylib -no_fixup_chains", "-execute -e _third -fixup_chains", "-execute -e _third -no_fixup_chains"} {
			path := filepath.Join(t.TempDir(), "linked")
			clitest.RunTool(t, "ld64.lld-19", append(strings.Fields(way), "-arch", arch, "-platform_version", "macos", "11.0", "11.0",
				"-undefined", "dynamic_lookup", "-o", path, object)...)
			images := mapsOf(t, path)
			require.Len(t, images, 1)
			require.Equal(t, "Mach-O image", images[0]["format"])
			require.Equal(t, goArch(t, triple), images[0]["arch"])
			linked(t, images[0], path, object)
			if way == "-dylib -fixup_chains" {
				archs, slices, objects = append(archs, arch), append(slices, path), append(objects, object)
			}
		}
	}
	// The objects are in a universal file of archives, and in an archive of a universal file.
	dir := t.TempDir()
	fat, archives := []string{"-create", "-output", filepath.Join(dir, "fat.o")}, []string{"-create", "-output", filepath.Join(dir, "fat.a")}
	for n, arch := range archs {
		archive := filepath.Join(dir, arch+".a")
		clitest.RunTool(t, "llvm-ar-19", "rcs", "--format=darwin", archive, objects[n])
		fat, archives = append(fat, objects[n]), append(archives, archive)
	}
	clitest.RunTool(t, "llvm-lipo-19", fat...)
	clitest.RunTool(t, "llvm-lipo-19", archives...)
	clitest.RunTool(t, "llvm-ar-19", "rcs", filepath.Join(dir, "of.a"), filepath.Join(dir, "fat.o"))
	for n, arch := range archs {
		for file, name := range map[string]string{"fat.o": "%s (%s)", "fat.a": "%s (%s)(module.o)", "of.a": "%s(fat.o) (%s)"} {
			path := filepath.Join(dir, file)
			image := imageOf(mapsOf(t, path), fmt.Sprintf(name, path, arch))
			require.NotNil(t, image, path)
			unlinked(t, image, objects[n])
		}
	}
	universal := filepath.Join(t.TempDir(), "universal")
	clitest.RunTool(t, "llvm-lipo-19", append([]string{"-create", "-output", universal}, slices...)...)
	images := mapsOf(t, universal)
	require.Len(t, images, 2)
	for n, arch := range archs {
		name := universal + " (" + arch + ")"
		at := imageOf(images, name)
		require.NotNil(t, at, name)
		linked(t, at, slices[n], objects[n])
	}
}

// imageOf returns the image with a name, or nil.
func imageOf(images []map[string]any, name string) map[string]any {
	for _, i := range images {
		if i["name"] == name {
			return i
		}
	}
	return nil
}

// TestMapsOfPE requires the right maps of a DLL.
func TestMapsOfPE(t *testing.T) {
	t.Parallel()
	for _, triple := range []string{"x86_64-pc-windows-msvc", "x86_64-pc-windows-gnu", "aarch64-pc-windows-msvc"} {
		t.Run(triple, func(t *testing.T) {
			object := compiled(t, twoOfThree(triple), triple)
			path := filepath.Join(t.TempDir(), "linked.dll")
			clitest.RunTool(t, "lld-link-19", "-dll", "-noentry", "-nodefaultlib", "-opt:noref", "-debug:symtab", "-out:"+path, object)
			images := mapsOf(t, path)
			require.Len(t, images, 1)
			require.Equal(t, "PE image", images[0]["format"])
			require.Equal(t, goArch(t, triple), images[0]["arch"])
			// llvm-nm adds the base of a PE image to its addresses.
			linked(t, images[0], path, object)
		})
	}
}
