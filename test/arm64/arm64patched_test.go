package arm64_test

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/test/clitest"
	"example.com/reframe/test/livetest"
)

// patchForms are the arguments that select a form of patch in deopt/testdata/arm64patches/host.c.
var patchForms = []string{"bl", "nop bl", "push bl", "bl stub", "b cfi", "b nocfi", "brk", "udf"}

// TestPatchedShadowsLiveOnARM64 requires that frames of a live process on arm64 have all values of a function whose stackmap shadow is patched, in
// each form of patch, and the callers of a function that saves SVE vectors on its stack. A core that was written in QEMU must show the same callers
// on this machine.
func TestPatchedShadowsLiveOnARM64(t *testing.T) {
	livetest.Slow(t)
	if !machineTurn(t) {
		return
	}
	data := func(path string) string {
		path, err := filepath.Abs(filepath.Join("../../deopt/testdata", path))
		require.NoError(t, err)
		return path
	}
	c, _ := arm64(t)
	built := func(ir, host string, flags ...string) string {
		object := livetest.Object(t, 19, data(ir), append([]string{"-O2", "-relocation-model=pic"}, flags...)...)
		return c.Build(t, []string{"-O1", "-fno-omit-frame-pointer", "-static", "-DWAITS", object}, data(host))
	}
	shadows := built("arm64patches/f.ll", "arm64patches/host.c")
	files := map[string]string{"shadows.ll": data("arm64patches/f.ll"), "sve": built("svevg/f.ll", "svevg/host.c", "-mattr=+sve")}
	script := []string{"start sve", "await sve", "run frames-sve reframe frames --json -p @sve", "run record-sve reframe record -p @sve -o /out/sve.core"}
	for _, form := range patchForms {
		name := "shadow-" + strings.ReplaceAll(form, " ", "-")
		files[name] = shadows
		script = append(script, fmt.Sprintf("start %s %s", name, strings.ReplaceAll(form, " ", "_")), "await "+name,
			fmt.Sprintf("run frames-%s reframe frames --json -p @%s --ir /shadows.ll", name, name))
	}
	out := onARM64(t, files, script...)
	report := func(name string) map[string]any {
		return clitest.Result{Code: int(out[name+".code"][0] - '0'), Stdout: string(out[name+".stdout"]), Stderr: string(out[name+".stderr"])}.Object(t)
	}
	// certain lists the frames of the named functions that are not guesses, and whether each has a record.
	certain := func(report map[string]any, functions ...string) (list []string) {
		for _, f := range clitest.Objects(t, clitest.Objects(t, report["threads"])[0]["frames"]) {
			if name, _ := f["function"].(string); slices.Contains(functions, name) && f["guess"] == nil {
				list = append(list, name)
			}
		}
		return list
	}
	for _, form := range patchForms {
		r := report("frames-shadow-" + strings.ReplaceAll(form, " ", "-"))
		require.Equal(t, []string{"handler", "f", "main"}, certain(r, "handler", "f", "main"), form)
		f := clitest.FrameOf(t, r, "f")
		require.Equal(t, "77", fmt.Sprint(f["record"].(map[string]any)["id"]), form)
		got := map[string]any{}
		for _, s := range clitest.Objects(t, f["slots"]) {
			require.Equal(t, "ok", s["status"], "%s: %v", form, s)
			name, _ := s["name"].(string)
			got[name] = s["value"]
		}
		require.Equal(t, map[string]any{"%x": "21", "%b": "7", "": "4242", "%y": "107"}, got, form)
	}

	stack := []string{"stop", "f", "entry", "main"}
	require.Equal(t, stack, certain(report("frames-sve"), stack...))
	core := clitest.TempFile(t, "sve.core", string(out["sve.core"]))
	require.Equal(t, stack, certain(clitest.Run(t, "frames", "--json", "--core", core, "--exe", files["sve"]).Object(t), stack...))
}
