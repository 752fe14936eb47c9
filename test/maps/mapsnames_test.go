package maps_test

import (
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/test/clitest"
	"example.com/reframe/test/livetest"
)

// TestMapsNames requires that functions are shown with their source names and found under both names. A name that is not mangled, or mangled by an
// unknown scheme, is unchanged. llvm-cxxfilt must agree, except for the hash after old names of Rust, which is not in the source, and the space
// between two brackets.
func TestMapsNames(t *testing.T) {
	livetest.Slow(t)
	t.Parallel()
	const definition = "define void @\"%s\"() {\n  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 1, i32 0)\n  ret void\n}\n"
	names := [][2]string{ // mangled (Itanium C++ ABI §5.1; Rust RFC 2603), demangled
		{"_ZN3foo3barEi", "foo::bar(int)"},
		{"_ZNKSt6vectorIiE4sizeEv", "std::vector<int>::size() const"},
		{"_RNvC7mycrate3foo", "mycrate::foo"},
		{"_RNvMC7mycrateNtC7mycrate3Bar3baz", "<mycrate::Bar>::baz"},
		{"_ZN4core3fmt5Write9write_fmt17h0123456789abcdefE", "core::fmt::Write::write_fmt"},
		{"plain", ""}, {"_Znonsense", ""}, {"with space", ""},
	}
	module := "declare void @llvm.experimental.stackmap(i64, i32, ...)\n"
	for _, n := range names {
		module += fmt.Sprintf(definition, n[0])
	}
	for _, triple := range []string{"x86_64-linux-gnu", "arm64-apple-macosx11", "x86_64-pc-windows-gnu"} {
		t.Run(triple, func(t *testing.T) {
			t.Parallel()
			underscore := ""
			if strings.Contains(triple, "apple") {
				underscore = "_"
			}
			object := compiled(t, module, triple)
			symbols, text := clitest.RunTool(t, "llvm-nm-19", object), clitest.Run(t, "maps", object).Stdout
			functions := functionsOf(t, mapsOf(t, object))
			require.Len(t, functions, len(names))
			for n, name := range names {
				require.Contains(t, symbols, " T "+underscore+name[0]+"\n")
				require.Equal(t, underscore+name[0], functions[n]["name"])
				shown := underscore + name[0]
				if name[1] == "" {
					require.NotContains(t, functions[n], "demangled")
				} else {
					shown = name[1]
					require.Equal(t, shown, functions[n]["demangled"])
				}
				require.Contains(t, text, "\n  "+shown+" unlinked, ")
				for _, want := range []string{shown, underscore + name[0]} {
					only := functionsOf(t, mapsOf(t, object, "--function", regexp.QuoteMeta(want)))
					require.Len(t, only, 1)
					require.Equal(t, functions[n], only[0])
				}
			}
		})
	}
}

// functionsOf returns the functions of the only image.
func functionsOf(t *testing.T, images []map[string]any) []map[string]any {
	t.Helper()
	require.Len(t, images, 1)
	return clitest.Objects(t, images[0]["functions"])
}

// linkages returns functions of every linkage that has code, in one section and in several.
func linkages(triple string) string {
	comdat, comdats, special := " comdat", "$odr = comdat any\n", ` section ".text.special"`
	if strings.Contains(triple, "apple") { // Mach-O has no comdats, and a section's name has two parts
		comdat, comdats, special = "", "", ` section "__TEXT,__special,regular,pure_instructions"`
	}
	module := "declare void @llvm.experimental.stackmap(i64, i32, ...)\n" + comdats
	for n, head := range []string{
		"internal void @first() noinline", "internal void @second() noinline", "void @visible()", "linkonce_odr void @odr()" + comdat,
		"weak void @weak()", "void @special()" + special,
	} {
		module += fmt.Sprintf("define %s {\n  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 %d, i32 8)\n", head, n)
		if n == 2 {
			module += "  call void @first()\n  call void @second()\n  call void @odr()\n"
		}
		module += "  ret void\n}\n"
	}
	return module
}

// TestMapsOfEveryLinkage requires that a function has its name whatever its linkage is, and that the rules are satisfied. Assemblers refer to a local
// function by its section, and to a weak one by a symbol that another file may define.
func TestMapsOfEveryLinkage(t *testing.T) {
	livetest.Slow(t)
	t.Parallel()
	check := func(t *testing.T, path, weak string) {
		t.Helper()
		symbols := clitest.RunTool(t, "llvm-nm-19", path)
		functions := functionsOf(t, mapsOf(t, path))
		want := []string{"first", "second", "visible", "odr", weak, "special"}
		require.Len(t, functions, len(want))
		for n, f := range functions {
			name := f["name"].(string)
			require.Equal(t, want[n], strings.TrimPrefix(name, "_"))
			require.Regexp(t, `(?m)^.* \w `+regexp.QuoteMeta(name)+`$`, symbols)
			if f["address"] != nil {
				address := strings.TrimPrefix(f["address"].(string), "0x")
				require.Regexp(t, `(?m)^0*`+address+` \w `+regexp.QuoteMeta(name)+`$`, symbols)
			}
		}
		r := clitest.Run(t, "maps", "--check", path)
		require.Equal(t, 0, r.Code, "%s%s", r.Stdout, r.Stderr)
	}
	for _, triple := range []string{
		"x86_64-linux-gnu", "aarch64-linux-gnu", "powerpc64-linux-gnu", "powerpc64le-linux-gnu", "s390x-linux-gnu",
		"x86_64-apple-macosx10.15", "arm64-apple-macosx11", "x86_64-pc-windows-msvc", "x86_64-pc-windows-gnu",
	} {
		t.Run(triple, func(t *testing.T) {
			t.Parallel()
			check(t, compiled(t, linkages(triple), triple), "weak")
			check(t, compiled(t, linkages(triple), triple, "-function-sections"), "weak")
		})
	}
	t.Run("linked", func(t *testing.T) {
		t.Parallel()
		object := compiled(t, linkages("x86_64-linux-gnu"), "x86_64-linux-gnu", "-relocation-model=pic", "-function-sections")
		for _, linker := range []string{"ld", "ld.lld-19"} {
			for _, way := range []string{"-r", "-no-pie", "-pie -z notext", "-shared -z notext"} {
				path := filepath.Join(t.TempDir(), "linked")
				clitest.RunTool(t, linker, append(strings.Fields(way), "-e", "0", "-o", path, object)...)
				check(t, path, "weak")
			}
		}
	})
	t.Run("PE", func(t *testing.T) {
		t.Parallel()
		object := compiled(t, linkages("x86_64-pc-windows-msvc"), "x86_64-pc-windows-msvc")
		path := filepath.Join(t.TempDir(), "linked.dll")
		clitest.RunTool(t, "lld-link-19", "-dll", "-noentry", "-nodefaultlib", "-opt:noref", "-debug:symtab", "-out:"+path, object)
		// In a linked image lld keeps only the name of the symbol that defines the weak function.
		check(t, path, ".weak.weak.default.visible")
	})
}
