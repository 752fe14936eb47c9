package replay_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/replay"
	"example.com/reframe/test/livetest"
)

// TestScriptReadsWhatTheProgramDumps requires that, if a launched program writes its IR while it runs, the modules in a folder of --ir name its
// values, also if the folder was empty at the start.
func TestScriptReadsWhatTheProgramDumps(t *testing.T) {
	const text = `declare void @cb(i64, i64)
declare void @llvm.experimental.stackmap(i64, i32, ...)
define i64 @f(i64 %a, i64 %b) {
  %x = mul i64 %a, FACTOR
  %y = add i64 %b, 1000
  call void @cb(i64 %x, i64 %y)
  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 7, i32 0, i64 %x, i64 %y)
  %r = add i64 %x, %y
  ret i64 %r
}
`
	dir := t.TempDir()
	env := []string{"HOST=" + livetest.CBinary(t, "dumping.c", "-I../internal/demo/target", "-no-pie")}
	for name, factor := range map[string]string{"THREE": "3", "FIVE": "5"} {
		path := filepath.Join(dir, name+".ll")
		require.NoError(t, os.WriteFile(path, []byte(strings.ReplaceAll(text, "FACTOR", factor)), 0o600))
		env = append(env, name+"="+path, name+"_OBJECT="+livetest.PICObject(t, 19, path, "-O2"))
	}
	const script1 = `mkdir dump
exec sh -c 'printf "dump $THREE $WORK/dump/f.ll -1\nload 0 $THREE_OBJECT\ncall 0 1 2\ndump $FIVE $WORK/dump/f.ll -1\nload 1 $FIVE_OBJECT\ncall 1 1 2\n" > plan'
launch --ir dump -- $HOST plan
until 7
expect %x = 3
expect %y = 1002
until 7
expect %x = 5
expect %y = 1002
continue
rm dump/f.ll
verify --ir dump -- $HOST plan
`
	_, r := script(t, &replay.Scripts{Env: env}, script1)
	require.Equal(t, "", r.Message)
}
