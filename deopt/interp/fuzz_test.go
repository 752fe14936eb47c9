package interp_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"example.com/reframe/deopt/interp"
	"example.com/reframe/internal/llvm/ir"
)

// FuzzRun runs every function of each module that parses, from its start and from the start of each block, under small limits. No module may cause
// an internal error.
func FuzzRun(f *testing.F) {
	for _, pattern := range []string{"testdata/*.ll", "../../testdata/programs/*.ll"} {
		files, err := filepath.Glob(pattern)
		if err != nil || len(files) == 0 {
			f.Fatal(pattern, err)
		}
		for _, file := range files {
			src, err := os.ReadFile(file)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(src, uint64(3))
		}
	}
	for _, c := range ended {
		f.Add([]byte(c.src), uint64(0))
	}
	f.Fuzz(func(t *testing.T, src []byte, seed uint64) {
		m, err := ir.Parse("fuzz.ll", src)
		if err != nil {
			return
		}
		in, err := interp.New(m, interp.Options{MaxSteps: 3000, MaxMemory: 1 << 20, MaxDepth: 20})
		if err != nil {
			return
		}
		for k, fn := range m.Funcs {
			if k == 50 || fn.Declared() {
				continue
			}
			var args []interp.Value
			for _, p := range fn.Params {
				v, err := made(p.Typ, seed)
				if err != nil {
					return
				}
				args = append(args, v)
			}
			_, err := in.Call(context.Background(), fn, args)
			own(t, err)
			blocks, err := fn.Body()
			if err != nil {
				continue
			}
			for _, b := range blocks[:min(len(blocks), 20)] {
				live, err := ir.LiveAt(b, 0)
				if err != nil {
					continue
				}
				values := map[ir.Value]interp.Value{}
				for _, v := range live {
					if values[v], err = made(v.Type(), seed); err != nil {
						return
					}
				}
				_, err = in.Resume(context.Background(), interp.Point{Block: b}, values)
				own(t, err)
			}
		}
	})
}

// made returns a value of a type: the seed for an integer, else undefined.
func made(t *ir.Type, seed uint64) (interp.Value, error) {
	if t.Kind == ir.IntKind && t.Bits <= 128 {
		return interp.FromUint(t, seed), nil
	}
	return interp.Undef(t)
}

func own(t *testing.T, err error) {
	t.Helper()
	var run *interp.RunError
	if errors.As(err, &run) && run.Kind == interp.KindInternal {
		t.Fatal(err)
	}
}
