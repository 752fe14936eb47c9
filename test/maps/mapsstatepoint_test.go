package maps_test

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/test/clitest"
	"example.com/reframe/test/livetest"
)

// vectors is a module whose gc pointers are vectors of four. It also has a call with another convention in a function with another collector, and
// stackmaps whose locations look like those of a statepoint.
const vectors = `
target datalayout = "e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-f80:128-n8:16:32:64-S128"
target triple = "x86_64-pc-linux-gnu"
declare void @callee()
declare void @llvm.experimental.stackmap(i64, i32, ...)
declare token @llvm.experimental.gc.statepoint.p0(i64 immarg, i32 immarg, ptr, i32 immarg, i32 immarg, ...)
define <4 x ptr addrspace(1)> @vectors(<4 x ptr addrspace(1)> %v) gc "statepoint-example" {
  %slot = alloca i64
  %other = alloca [3 x i32]
  call void @callee() [ "deopt"(i32 7, ptr %slot, ptr %other) ]
  ret <4 x ptr addrspace(1)> %v
}
define fastcc void @convention(i64 %a) gc "statepoint-example" {
  %slot = alloca i64
  %other = alloca i64
  %t = call fastcc token (i64, i32, ptr, i32, i32, ...) @llvm.experimental.gc.statepoint.p0(i64 6, i32 0, ptr elementtype(void ()) @callee, i32 0, i32 1, i32 0, i32 0) [ "deopt"(i64 %a), "gc-live"(ptr %slot, ptr %other), "gc-transition"(i32 1) ]
  ret void
}
define void @alike(i64 %a) {
  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 7, i32 0, i64 0, i64 0, i64 1, i64 %a)
  ret void
}
define void @unlike(i64 %a) {
  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 8, i32 0, i64 0, i64 0, i64 2, i64 %a)
  ret void
}
`

// amd64Name returns the name of a register's DWARF number (System V ABI, AMD64 supplement, figure 3.36).
func amd64Name(t *testing.T, number, size string) string {
	t.Helper()
	n, err := strconv.Atoi(number)
	require.NoError(t, err)
	switch {
	case n < 8:
		return []string{"rax", "rdx", "rcx", "rbx", "rsi", "rdi", "rbp", "rsp"}[n]
	case n < 16:
		return fmt.Sprint("r", n)
	}
	require.Less(t, n, 33)
	return map[string]string{"16": "xmm", "32": "ymm", "64": "zmm"}[size] + fmt.Sprint(n-17)
}

var readobjLocation = regexp.MustCompile(`#\d+: (\w+) (?:#\d+ \((\d+)\)|\[?R#(\d+)(?: \+ (-?\d+)\]?)?|(\d+)), size: (\d+)`)

// readobjRecords returns the locations of each record from llvm-readobj, spelled as by maps: registers by name, constants with a sign.
func readobjRecords(t *testing.T, version int, path string) map[string][]string {
	t.Helper()
	out, err := exec.Command(livetest.LLVM(t, version, "llvm-readobj"), "--stackmap", path).Output()
	require.NoError(t, err)
	records := map[string][]string{}
	for _, text := range strings.Split(string(out), "Record ID: ")[1:] {
		id, text, _ := strings.Cut(text, ",")
		require.NotContains(t, records, id)
		records[id] = []string{}
		for n, m := range readobjLocation.FindAllStringSubmatch(text, -1) {
			kind, large, reg, offset, small, size := m[1], m[2], m[3], m[4], m[5], m[6]
			place := ""
			switch kind {
			case "ConstantIndex":
				v, err := strconv.ParseUint(large, 10, 64)
				require.NoError(t, err)
				place = fmt.Sprint(int64(v))
			case "Constant":
				v, err := strconv.ParseUint(small, 10, 32)
				require.NoError(t, err)
				require.LessOrEqual(t, v, uint64(math.MaxUint32))
				place = fmt.Sprint(int32(v))
			case "Register":
				place = amd64Name(t, reg, size)
			case "Direct":
				place = amd64Name(t, reg, "") + signed(offset)
			case "Indirect":
				place = "[" + amd64Name(t, reg, "") + signed(offset) + "]"
			}
			unit := " bytes"
			if size == "1" {
				unit = " byte"
			}
			records[id] = append(records[id], fmt.Sprintf("#%d %s %s %s%s", n, kind, place, size, unit))
		}
	}
	return records
}

func signed(n string) string {
	if strings.HasPrefix(n, "-") {
		return n
	}
	return "+" + n
}

// textRecord returns the head and the locations that maps prints for a record, with single spaces between words.
func textRecord(t *testing.T, stdout, id string) (head string, locations []string) {
	t.Helper()
	lines := strings.Split(stdout, "\n")
	for n, line := range lines {
		if !strings.HasPrefix(line, "    record "+id+" at ") {
			continue
		}
		require.Empty(t, head, "two records %s", id)
		head = strings.TrimSpace(line)
		for _, line := range lines[n+1:] {
			if !strings.HasPrefix(line, "      #") {
				break
			}
			locations = append(locations, strings.Join(strings.Fields(line), " "))
		}
	}
	require.NotEmpty(t, head, "no record %s in\n%s", id, stdout)
	return head, locations
}

// role is the role of a location, first without the module and then with it.
type role struct{ what, name, typ string }

// roles returns the roles of a statepoint's first locations, followed by rest.
func roles(convention, flags string, rest ...role) []role {
	return append([]role{{"calling convention " + convention, "", ""}, {"flags " + flags, "", ""}, {"number of deopt values", "", ""}}, rest...)
}

// TestMapsStatepoints requires that the locations of statepoints are those of llvm-readobj, and that their roles match the module.
func TestMapsStatepoints(t *testing.T) {
	livetest.Slow(t)
	t.Parallel()
	own := clitest.TempFile(t, "vectors.ll", vectors)
	shapes, err := os.ReadFile("../../deopt/stackmap/testdata/shapes.ll")
	require.NoError(t, err)
	for _, c := range []struct {
		program, id, site string
		head              string // head of the record in the JSON
		roles             []role
		pointers          map[int]string // number of pointers in a location
	}{
		{
			program: "jit_sp.ll", id: "2882400000", site: "statepoint",
			head: `{"calling_convention":0,"flags":0,"gc_transition":false,"deopt":13,"pairs":4,"allocas":0}`,
			roles: roles("C", "none", role{"deopt 0", "", "i32"}, role{"deopt 1", "", "i32"}, role{"deopt 2", "%x", "i64"},
				role{"deopt 3", "%y", "i32"}, role{"deopt 4", "%e", "double"}, role{"deopt 5", "%c", "i8"}, role{"deopt 6", "", "i64"},
				role{"deopt 7", "", "i64"}, role{"deopt 8", "%o", "ptr addrspace(1)"}, role{"deopt 9", "%der", "ptr addrspace(1)"},
				role{"deopt 10", "", "ptr addrspace(1)"}, role{"deopt 11", "%slot", "ptr"}, role{"deopt 12", "", "float"},
				role{"base 0", "", ""}, role{"derived 0", "", ""}, role{"base 1", "", ""}, role{"derived 1", "", ""},
				role{"base 2", "", ""}, role{"derived 2", "", ""}, role{"base 3", "", ""}, role{"derived 3", "", ""}),
		},
		{
			program: "sp_push.ll", id: "61", site: "statepoint",
			head:  `{"calling_convention":0,"flags":0,"gc_transition":false,"deopt":2,"pairs":0,"allocas":0}`,
			roles: roles("C", "none", role{"deopt 0", "%a", "i64"}, role{"deopt 1", "%b", "i64"}),
		},
		{
			program: "deoptimize.ll", id: "2882400000", site: "deoptimize",
			head: `{"calling_convention":0,"flags":0,"gc_transition":false,"deopt":4,"pairs":0,"allocas":0}`,
			roles: roles("C", "none", role{"deopt 0", "", "i32"}, role{"deopt 1", "%i", "i64"}, role{"deopt 2", "%acc", "i64"},
				role{"deopt 3", "%n", "i64"}),
		},
		{
			program: clitest.TempFile(t, "shapes.ll", string(shapes)), id: "6", site: "statepoint",
			head:  `{"calling_convention":0,"flags":1,"gc_transition":true,"deopt":1,"pairs":0,"allocas":1}`,
			roles: roles("C", "gc transition", role{"deopt 0", "%a", "i64"}, role{"alloca 0", "", ""}),
		},
		{
			program: own, id: "2882400000", site: "statepoint",
			head: `{"calling_convention":0,"flags":0,"gc_transition":false,"deopt":3,"pairs":1,"allocas":0}`,
			roles: roles("C", "none", role{"deopt 0", "", "i32"}, role{"deopt 1", "%slot", "ptr"}, role{"deopt 2", "%other", "ptr"},
				role{"base 0", "", ""}, role{"derived 0", "", ""}),
			pointers: map[int]string{6: "4", 7: "4"},
		},
		{
			program: own, id: "6", site: "statepoint",
			head:  `{"calling_convention":8,"flags":1,"gc_transition":true,"deopt":1,"pairs":0,"allocas":2}`,
			roles: roles("fast", "gc transition", role{"deopt 0", "%a", "i64"}, role{"alloca 0", "", ""}, role{"alloca 1", "", ""}),
		},
	} {
		for _, version := range []int{19, 22} {
			object, module := livetest.Object(t, version, c.program), livetest.IR(t, version, c.program)
			places := readobjRecords(t, version, object)[c.id]
			require.Len(t, places, len(c.roles), object)
			for _, with := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s/%s/%d/%v", c.program, c.id, version, with), func(t *testing.T) {
					args := []string{"maps", object, "--record", c.id}
					if with {
						args = append(args, "--ir", module)
					}
					var want []string
					for n, r := range c.roles {
						line := places[n]
						if k := c.pointers[n]; k != "" {
							line += " = " + k + " pointers"
						}
						line += " " + r.what
						if with {
							line += strings.TrimRight(" "+r.name, " ") + strings.TrimRight(" "+r.typ, " ")
						}
						want = append(want, line)
					}
					r := clitest.Run(t, args...)
					require.Equal(t, 0, r.Code, r.Stderr)
					head, locations := textRecord(t, r.Stdout, c.id)
					require.Equal(t, want, locations)
					line := siteLine(t, module, c.site, c.id)
					if with {
						require.True(t, strings.HasSuffix(head, fmt.Sprintf(", %s of line %d", c.site, line)), head)
					} else {
						require.True(t, strings.HasSuffix(head, ", reads as a statepoint"), head)
					}

					r = clitest.Run(t, append(args, "--json")...)
					require.Equal(t, 0, r.Code, r.Stderr)
					record := onlyRecord(t, r.Object(t))
					got, err := json.Marshal(record["statepoint"])
					require.NoError(t, err)
					require.JSONEq(t, c.head, string(got))
					if with {
						require.Equal(t, c.site, record["site"])
						require.Equal(t, true, record["site_sure"])
						require.Equal(t, json.Number(strconv.Itoa(line)), record["line"])
					} else {
						require.Equal(t, "statepoint", record["site"])
						require.NotContains(t, record, "site_sure")
						require.NotContains(t, record, "line")
					}
					for n, l := range clitest.Objects(t, record["locations"]) {
						what := c.roles[n].what
						if n < 2 { // the text adds the meaning of these numbers
							what = []string{"calling convention", "flags"}[n]
						}
						require.Equal(t, what, l["role"])
						for key, want := range map[string]string{"name": c.roles[n].name, "type": c.roles[n].typ} {
							if with && want != "" {
								require.Equal(t, want, l[key], "location %d", n)
							} else {
								require.NotContains(t, l, key, "location %d", n)
							}
						}
						if k := c.pointers[n]; k != "" {
							require.Equal(t, json.Number(k), l["pointers"])
						} else {
							require.NotContains(t, l, "pointers")
						}
					}
				})
			}
		}
	}
}

// siteLine returns the number of a site's line in a module.
func siteLine(t *testing.T, module, site, id string) int {
	t.Helper()
	text, err := os.ReadFile(module)
	require.NoError(t, err)
	call := regexp.MustCompile(`^\s.*call .*@llvm\.experimental\.gc\.statepoint\.\w+\(i64 ` + id + `,`)
	if site == "deoptimize" {
		call = regexp.MustCompile(`^\s.*call .*@__llvm_deoptimize|^\s.*call .*@llvm\.experimental\.deoptimize`)
	}
	var found []int
	for n, line := range strings.Split(string(text), "\n") {
		if call.MatchString(line) {
			found = append(found, n+1)
		}
	}
	require.Len(t, found, 1, "%s", text)
	return found[0]
}

// onlyRecord returns the only record of a report.
func onlyRecord(t *testing.T, report map[string]any) map[string]any {
	t.Helper()
	var records []map[string]any
	for _, image := range clitest.Objects(t, report["images"]) {
		for _, f := range clitest.Objects(t, image["functions"]) {
			records = append(records, clitest.Objects(t, f["records"])...)
		}
	}
	require.Len(t, records, 1)
	return records[0]
}

// TestMapsReadingIsNoStatement requires that a stackmap with the shape of a statepoint is shown as one until a module identifies it. A stackmap
// without that shape, and a patchpoint, must never be.
func TestMapsReadingIsNoStatement(t *testing.T) {
	t.Parallel()
	path := clitest.TempFile(t, "vectors.ll", vectors)
	object, module := livetest.Object(t, 19, path), livetest.IR(t, 19, path)
	without, with := clitest.Run(t, "maps", object), clitest.Run(t, "maps", object, "--ir", module)

	head, locations := textRecord(t, without.Stdout, "7")
	require.True(t, strings.HasSuffix(head, ", 4 locations, reads as a statepoint"), head)
	require.True(t, strings.HasSuffix(locations[3], " deopt 0"), "%q", locations)
	head, locations = textRecord(t, with.Stdout, "7")
	require.Regexp(t, `, 4 locations, stackmap of line \d+$`, head)
	require.Equal(t, []string{"#0 Constant 0 8 bytes live 0 i64", "#1 Constant 0 8 bytes live 1 i64", "#2 Constant 1 8 bytes live 2 i64",
		"#3 Register rdi 8 bytes live 3 %a i64"}, locations)
	record := onlyRecord(t, clitest.Run(t, "maps", object, "--ir", module, "--record", "7", "--json").Object(t))
	require.Equal(t, "stackmap", record["site"])
	require.NotContains(t, record, "statepoint")

	head, locations = textRecord(t, without.Stdout, "8")
	require.True(t, strings.HasSuffix(head, ", 4 locations"), head)
	require.Equal(t, "#3 Register rdi 8 bytes", locations[3])
	record = onlyRecord(t, clitest.Run(t, "maps", object, "--record", "8", "--json").Object(t))
	for _, key := range []string{"site", "site_sure", "statepoint", "line"} {
		require.NotContains(t, record, key)
	}

	patchpoint := livetest.Object(t, 19, "jit_pp.ll")
	require.NotContains(t, clitest.Run(t, "maps", patchpoint).Stdout, "reads as")
	r := clitest.Run(t, "maps", patchpoint, "--ir", livetest.IR(t, 19, "jit_pp.ll"))
	head, _ = textRecord(t, r.Stdout, "2001")
	require.Regexp(t, `, 16 locations, patchpoint of line \d+$`, head)
	head, _ = textRecord(t, r.Stdout, "2002")
	require.Regexp(t, `, 4 locations, stackmap of line \d+$`, head)
}
