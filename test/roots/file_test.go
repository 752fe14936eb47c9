package roots_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/test/clitest"
	"example.com/reframe/test/livetest"
)

// object compiles a module of deopt/testdata/gc, and returns the paths of the object and of the module.
func object(t *testing.T, version int, program string) (object, module string) {
	t.Helper()
	module = livetest.Testdata(t, "..", "deopt", "testdata", "gc", program+".ll")
	object = filepath.Join(t.TempDir(), program+".o")
	livetest.Make(t, livetest.LLVM(t, version, "llc"), "-O2", "-relocation-model=pic", "-filetype=obj", module, "-o", object)
	return object, module
}

// TestRootsOfAFile requires that each pair of an object is listed with its names, types and locations, and that null pointers are omitted.
func TestRootsOfAFile(t *testing.T) {
	t.Parallel()
	for _, version := range []int{16, 19, 22} {
		t.Run(fmt.Sprint(version), func(t *testing.T) {
			object, module := object(t, version, "explicit")
			r := clitest.Run(t, "roots", object, "--ir", module)
			require.Zero(t, r.Code, r.Stderr)
			for _, line := range []string{
				`  work`, `    returns to \+0x\w+  record 7, line 16`,
				` +%out +ptr addrspace\(1\) \[rsp\+\d+\]  base: %o \[rsp\+\d+\]`,
				` +%p +ptr addrspace\(1\) \[rsp\+\d+\]`,
				` +%v +<2 x ptr addrspace\(1\)> \[rsp\+\d+\] = 2 pointers`,
				`3 pairs at 1 safepoint in 1 function · 1 derived`,
			} {
				require.Regexp(t, `(?m)^`+line+`$`, r.Stdout)
			}
			r = clitest.Run(t, "roots", object)
			require.Zero(t, r.Code, r.Stderr)
			require.Regexp(t, `record 7, reads as a statepoint\n`, r.Stdout)
			require.Contains(t, r.Stdout, "· 1 only read as statepoints (--ir)\n")
			r = clitest.Run(t, "roots", object, "--count", "--ir", module)
			require.Regexp(t, `(?m)^ +3 at 1 safepoint +work$`, r.Stdout)

			r = clitest.Run(t, "roots", object, "--ir", module, "--json")
			var value any
			require.NoError(t, json.Unmarshal([]byte(r.Stdout), &value))
			require.NoError(t, clitest.SchemaOf(t, "rootmaps.schema.json").Validate(value), r.Stdout)
			var out struct {
				Images []struct {
					Functions []struct {
						Name       string
						Safepoints []struct {
							Pairs []struct {
								Name, Type string
								Pointers   int
								Base       *struct{ Name string }
							}
						}
					}
				}
				Summary map[string]int
			}
			require.NoError(t, json.Unmarshal([]byte(r.Stdout), &out))
			require.Equal(t, map[string]int{"functions": 1, "safepoints": 1, "pairs": 3, "derived": 1, "allocas": 0, "unsure": 0, "unreadable": 0}, out.Summary)
			for _, p := range out.Images[0].Functions[0].Safepoints[0].Pairs {
				require.Equal(t, p.Name == "%out", p.Base != nil)
				require.Equal(t, p.Name == "%v", p.Pointers == 2)
			}

			clitest.Run(t, "roots", object, "--function", "nothing").Fails(t, 2, "no safepoint of nothing; the file has 1 record")
			clitest.Run(t, "roots", object, "--heap", "1-2").Fails(t, 64, "--heap requires a process or a core")
		})
	}
}

// TestRootsOfAFileWithoutSafepoints requires a reason for files without stack maps, and for files whose records belong to other kinds of sites.
func TestRootsOfAFileWithoutSafepoints(t *testing.T) {
	t.Parallel()
	text := filepath.Join(t.TempDir(), "text")
	require.NoError(t, os.WriteFile(text, []byte("hello"), 0o600))
	require.Equal(t, 2, clitest.Run(t, "roots", text).Code)
	program := livetest.PICObject(t, 19, "jit_pp.ll")
	clitest.Run(t, "roots", program).Fails(t, 2, "is that of a statepoint")
}
