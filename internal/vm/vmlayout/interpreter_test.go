package vmlayout

import (
	"encoding/binary"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const interpreting = `
interpreter_functions = ["run"]
def frames(site): return None
def method_name(m): return read_string(m)
def interpreter_frames(native):
    top = native.register("rbx")
    if not top: return None
    inner = frame(read(top), read(top + 8, "i32"), "in-call")
    inner.local(0, native.pointee(top + 16, "u64").decoded_by(nan_box()))
    return [inner, frame("root", native.cfa - native.pc, "in-call")]
`

// TestInterpreterFrames runs interpreter_frames over registers and memory, in this process and in a child.
func TestInterpreterFrames(t *testing.T) {
	here, err := Parse("a.star", []byte(interpreting))
	require.NoError(t, err)
	m := memory{0x1000: "\x00\x20\x00\x00\x00\x00\x00\x00\x11\x00\x00\x00....\x07\x00\x00\x00\x00\x00\xff\xff", 0x2000: "Foo.bar\x00" + strings.Repeat(".", 32)}
	for name, l := range map[string]*Layout{"here": here, "in a child": elsewhere(t, interpreting)} {
		t.Run(name, func(t *testing.T) {
			require.True(t, l.Interprets("_Z3runv", "run"))
			require.False(t, l.Interprets("", "runs"))
			site := func(rbx Register) *Site {
				return &Site{Function: "run", Kind: NativeSite, Target: immutable(m, nil), Native: &Native{PC: 1, CFA: Register{Bits: 5}, Registers: map[string]Register{"rbx": rbx}}}
			}
			from := &Source{Memory: m, Static: m, Order: binary.LittleEndian}
			vm := l.Interpreter(site(Register{Bits: 0x1000}), from)
			require.Empty(t, vm.Error)
			require.Len(t, vm.Frames, 2)
			require.Equal(t, "Foo.bar", vm.Frames[0].Method)
			require.EqualValues(t, 0x11, *vm.Frames[0].Position)
			require.Equal(t, "7", vm.Frames[0].Locals[0].Value)
			require.Equal(t, "root", vm.Frames[1].Method)
			require.EqualValues(t, 4, *vm.Frames[1].Position)

			require.Nil(t, l.Interpreter(site(Register{}), from), "it runs no method")
			vm = l.Interpreter(site(Register{Why: "the callee may have overwritten it"}), from)
			require.Equal(t, l.Name+":6:26: native frame of run: register: rbx is unavailable: the callee may have overwritten it", vm.Error)
			vm = l.Interpreter(site(Register{Bits: 0x3000}), from)
			require.Equal(t, l.Name+":8:23: native frame of run: read: 8 bytes at 0x3000: not mapped", vm.Error)
			without := site(Register{})
			without.Native.Registers = nil
			require.Contains(t, l.Interpreter(without, from).Error, "the architecture has no general-purpose register rbx")
		})
	}
}

// TestInterpreterFunctionsErrors requires an error for each definition of interpreter_functions that is not a list of names.
func TestInterpreterFunctionsErrors(t *testing.T) {
	for text, want := range map[string]string{
		"interpreter_functions = ['f']":                                       "interpreter_functions and interpreter_frames(native) require each other",
		"def interpreter_frames(native): return None":                         "interpreter_functions and interpreter_frames(native) require each other",
		"interpreter_functions = 'f'\ndef interpreter_frames(n): return None": "interpreter_functions must be a list of up to 1024 names of functions",
		"interpreter_functions = [1]\ndef interpreter_frames(n): return None": "interpreter_functions has a int; expected names of functions",
		"interpreter_functions = ['f']\ninterpreter_frames = 'f'":             "interpreter_frames is a string; expected a function",
	} {
		_, err := Parse("a.star", []byte("def frames(site): return None\n"+text+"\n"))
		require.EqualError(t, err, "a.star: "+want)
	}
	l, err := Parse("a.star", []byte("interpreter_functions = ['f']\ndef interpreter_frames(n):\n  while True: pass\ndef frames(site): return None\n"))
	require.NoError(t, err)
	vm := l.Interpreter(&Site{Function: "f", Target: immutable(memory{}, nil), Native: &Native{}}, &Source{})
	require.Contains(t, vm.Error, "it did not end after 2000000 steps")
}
