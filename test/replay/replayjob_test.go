package replay_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"example.com/reframe/test/clitest"
	"example.com/reframe/test/livetest"
)

// job holds the members of doc/user/replay-job.yaml that the test uses.
type job struct {
	APIVersion string `yaml:"apiVersion"`
	Kind       string
	Spec       struct {
		CompletionMode       string `yaml:"completionMode"`
		Completions          int
		Parallelism          int
		BackoffLimitPerIndex int `yaml:"backoffLimitPerIndex"`
		Template             struct {
			Spec struct {
				RestartPolicy string `yaml:"restartPolicy"`
				Containers    []struct {
					Name         string
					Command      []string
					VolumeMounts []struct {
						MountPath string `yaml:"mountPath"`
					} `yaml:"volumeMounts"`
				}
				Volumes []struct{ Name string }
			}
		}
	}
}

// TestReplayJob requires that the command of the example, with the cluster's variables and mounts, processes all cores. The pods together must give
// the results of one run, also if one was killed and started again.
func TestReplayJob(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../doc/user/replay-job.yaml")
	require.NoError(t, err)
	var j job
	require.NoError(t, yaml.Unmarshal(text, &j))
	spec := j.Spec.Template.Spec
	require.Equal(t, "batch/v1 Job Indexed Never", fmt.Sprintf("%s %s %s %s", j.APIVersion, j.Kind, j.Spec.CompletionMode, spec.RestartPolicy))
	require.Len(t, spec.Containers, 1)
	container := spec.Containers[0]
	require.Equal(t, "reframe", container.Command[0])
	require.Contains(t, container.Command, fmt.Sprintf("--shard=$(JOB_COMPLETION_INDEX)/%d", j.Spec.Completions))
	require.Len(t, spec.Volumes, len(container.VolumeMounts))

	core := clitest.CoreAtExit(t)
	cores := sameCores(t, core, 40)
	brokenCores(t, cores, core)
	modules, results := t.TempDir(), t.TempDir()
	for name, from := range map[string]string{"loop.ll": livetest.IR(t, 19, "deoptimize.ll"), "loop.layout.json": clitest.DeoptimizeLayout(t)} {
		content, err := os.ReadFile(from)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(filepath.Join(modules, name), content, 0o644))
	}
	mounts := map[string]string{"/cores": cores, "/modules": modules, "/results": results, "/tmp": t.TempDir()}
	mounted := func(word string) string {
		for _, m := range container.VolumeMounts {
			require.Contains(t, mounts, m.MountPath)
			flag, path, isFlag := strings.Cut(word, "=")
			if !isFlag {
				flag, path = "", word
			}
			if strings.HasPrefix(path, m.MountPath+"/") {
				word = mounts[m.MountPath] + strings.TrimPrefix(path, m.MountPath)
				if isFlag {
					word = flag + "=" + word
				}
				return word
			}
		}
		return word
	}
	pod := func(index int) clitest.Result {
		var args []string
		for _, word := range container.Command[1:] {
			args = append(args, mounted(strings.ReplaceAll(word, "$(JOB_COMPLETION_INDEX)", fmt.Sprint(index))))
		}
		return clitest.Run(t, args...)
	}
	union := map[string]string{}
	for index := range j.Spec.Completions {
		r := pod(index)
		require.Contains(t, []int{0, 1}, r.Code, r.Stderr)
		part, summary := outcomes(t, r.Stdout)
		require.NotEmpty(t, part)
		for path, text := range part {
			require.NotContains(t, union, path)
			union[path] = text
		}
		require.FileExists(t, filepath.Join(results, fmt.Sprintf("report-%d.xml", index)))
		again, kept := outcomes(t, pod(index).Stdout)
		require.Equal(t, part, again)
		require.EqualValues(t, len(part), kept["kept"])
		require.Equal(t, summary["items"], kept["items"])
	}
	whole, _ := outcomes(t, clitest.Run(t, "replay", "--json", "--cores", cores+"/...", "--ir", filepath.Join(modules, "loop.ll"), "--layout", filepath.Join(modules, "loop.layout.json")).Stdout)
	require.Len(t, whole, 43)
	require.Equal(t, whole, union)
}
