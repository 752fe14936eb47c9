package ir

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/test/livetest"
)

// TestReadsWhatClangPrints requires that clang's output for C and C++ is parsed as the assembler of the same release parses it: each instruction with the line
// and column of its debug information.
func TestReadsWhatClangPrints(t *testing.T) {
	livetest.Slow(t)
	const avx512 = "-march=skylake-avx512"
	cases := []struct {
		file string
		args []string
	}{
		{"language.c", []string{"-O0"}},
		{"language.c", []string{"-O0", "-g3"}},
		{"language.c", []string{"-O2", "-g"}},
		{"language.c", []string{"-O3", "-ffast-math", avx512}},
		{"language.c", []string{"-Os", "-fPIC", "-fstack-protector-strong", "-fcf-protection", "-pg"}},
		{"language.c", []string{"-O1", "-ffp-model=strict", "-fno-discard-value-names"}},
		{"language.c", []string{"-O1", "-fsanitize=address,undefined"}},
		{"language.c", []string{"-O1", "-fprofile-instr-generate", "-fcoverage-mapping", "-gsplit-dwarf"}},
		{"language.c", []string{"-O2", "-flto=thin"}},
		{"exceptions.cpp", []string{"-O0"}},
		{"exceptions.cpp", []string{"-O2", "-g"}},
		{"exceptions.cpp", []string{"-O1", "-fsanitize=thread", "-fstrict-vtable-pointers"}},
		{"exceptions.cpp", []string{"-O2", "-flto", "-fwhole-program-vtables", "-fvisibility=hidden", "-fsanitize=cfi"}},
		{"exceptions.cpp", []string{"-O1", "--target=i686-w64-mingw32"}},
		{"exceptions.cpp", []string{"-O0", "--target=i686-unknown-linux-gnu"}},
		{"vectors.c", []string{"-O0", avx512, "-mavx512bf16"}},
		{"vectors.c", []string{"-O3", avx512, "-mavx512bf16"}},
		{"parallel.c", []string{"-O0", "-fopenmp"}},
		{"parallel.c", []string{"-O2", "-fopenmp", "-g"}},
		{"coroutine.cpp", []string{"-std=c++20", "-O0"}},
		{"coroutine.cpp", []string{"-std=c++20", "-O2"}},
	}
	for _, c := range cases {
		for _, v := range []int{14, 19} {
			name := fmt.Sprintf("clang-%d %v %s", v, c.args, c.file)
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				text := clang(t, v, c.file, c.args...)
				requireAsAssembled(t, v, text)
			})
		}
	}
}

// TestReadsWhatLaterReleasesPrint requires that the output of later releases' optimizers is parsed as the assembler of the same release parses it.
// The input is clang 14's output, with typed and opaque pointers and with use-list orders.
func TestReadsWhatLaterReleasesPrint(t *testing.T) {
	for _, file := range []string{"language.c", "exceptions.cpp"} {
		old := clang(t, 14, file, "-O1", "-g")
		bitcode := filepath.Join(t.TempDir(), "old.bc")
		_, errs, ok := llvm(t, 14, "llvm-as", "-o", bitcode, write(t, "old.ll", old))
		require.True(t, ok, errs)
		requireAsAssembled(t, 16, opt(t, 16, bitcode, "-opaque-pointers=0", "-preserve-ll-uselistorder"))
		requireAsAssembled(t, 19, opt(t, 19, bitcode, "-write-experimental-debuginfo=false", "-passes=default<O2>"))
		requireAsAssembled(t, 22, opt(t, 22, bitcode, "-preserve-ll-uselistorder", "-passes=reg2mem"))
		requireAsAssembled(t, 22, opt(t, 22, bitcode, "-module-summary", "-passes=default<O3>"))
	}
}

// TestReadsCallBrAndFunclets requires that functions with callbr and funclets are parsed as the assembler parses them.
func TestReadsCallBrAndFunclets(t *testing.T) {
	for _, v := range []int{14, 19} {
		jumps := clang(t, v, "asmgoto.c", "-O1")
		require.Contains(t, jumps, "callbr")
		requireAsAssembled(t, v, jumps)
		found := map[Op]int{}
		for _, level := range []string{"-O0", "-O2"} {
			text := clang(t, v, "exceptions.cpp", level, "--target=x86_64-pc-windows-msvc", "-fexceptions", "-fcxx-exceptions")
			requireAsAssembled(t, v, text)
			m := parse(t, text)
			for _, f := range m.Funcs {
				if f.Declared() {
					continue
				}
				blocks, err := f.Body()
				require.NoError(t, err)
				for _, b := range blocks {
					for _, in := range b.Instrs {
						found[in.Op]++
					}
				}
			}
		}
		for _, op := range []Op{OpCatchSwitch, OpCatchPad, OpCatchRet, OpCleanupPad, OpCleanupRet} {
			require.Positive(t, found[op], "%v, clang %d", op, v)
		}
	}
}

// TestFuncletsThatAreNone requires an error with a position for invalid funclets and callbr, which LLVM's assembler rejects.
func TestFuncletsThatAreNone(t *testing.T) {
	const head = "define void @f() {\n  "
	for _, c := range []struct{ text, err string }{
		{"%a = catchswitch within none [] unwind to caller", "expected 'label'"},
		{"%a = catchswitch within none [label %b] unwind to nothing", "expected 'caller'"},
		{"%a = catchswitch within none [label %b]", "expected 'unwind'"},
		{"%a = catchpad within none i32 1", "before the arguments"},
		{"%a = cleanuppad none []", "expected 'within'"},
		{"catchret from none to %b", "expected 'label'"},
		{"cleanupret from none unwind", "expected 'label'"},
		{"callbr void asm \"\", \"\"() to label %b", "before the blocks"},
		{"callbr void asm \"\", \"\"() to label %b [label %b", "at end of block list"},
	} {
		text := head + c.text + "\nb:\n  ret void\n}\n"
		m, err := Parse("f.ll", []byte(text))
		if err == nil {
			_, err = m.Func("f").Body()
		}
		require.ErrorContains(t, err, c.err, c.text)
		_, _, ok := llvm(t, 19, "llvm-as", "-o", os.DevNull, write(t, "f.ll", text))
		require.False(t, ok, c.text)
	}
}

// clang returns the IR of a file of the corpus.
func clang(t *testing.T, version int, file string, args ...string) string {
	t.Helper()
	args = append([]string{"-S", "-emit-llvm", "-w"}, append(args, filepath.Join("testdata", "corpus", file))...)
	return made(t, version, "clang", args...)
}

// requireAsAssembled compares a parsed text with the bitcode that a release's assembler makes from it.
func requireAsAssembled(t *testing.T, version int, text string) {
	t.Helper()
	m := parse(t, text)
	var got [][]string
	for _, f := range m.Funcs {
		if f.Declared() {
			continue
		}
		blocks, err := f.Body()
		require.NoError(t, err)
		got = append(got, recordsOf(blocks))
	}
	require.Equal(t, assembled(t, version, text, m.typed), got)
}

// instRecord matches the record of an instruction, or of its source location, in the output of llvm-bcanalyzer. llvm-bcanalyzer has no name for some
// codes.
var instRecord = regexp.MustCompile(`(?m)^  (?:  )?<(FUNCTION_BLOCK|INST_[A-Z0-9]+|UnknownCode\d+|DEBUG_LOC_AGAIN|DEBUG_LOC)\b(?: abbrevid=\d+)?(?: op0=(\d+) op1=(\d+))?`)

// recordCodes names the codes without a name (LLVM's LLVMBitCodes.h, FunctionCodes).
var recordCodes = map[string]string{
	"UnknownCode31": "INDIRECTBR", "UnknownCode36": "FENCE", "UnknownCode39": "RESUME", "UnknownCode47": "LANDINGPAD",
	"UnknownCode41": "LOADATOMIC", "UnknownCode45": "STOREATOMIC", "UnknownCode46": "CMPXCHG",
	"UnknownCode51": "CLEANUPPAD", "UnknownCode52": "CATCHSWITCH", "UnknownCode57": "CALLBR",
	"UnknownCode56": "UNOP", "UnknownCode58": "FREEZE", "UnknownCode59": "ATOMICRMW",
}

// assembled returns the instructions of each function in the bitcode that the assembler makes from a text.
func assembled(t *testing.T, version int, text string, typed bool) (functions [][]string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "assembled.bc")
	args := []string{"-o", file, write(t, "text.ll", text)}
	if !typed {
		args = append(args, opaque14(version)...)
	} else if version == 16 {
		args = append(args, "-opaque-pointers=0")
	}
	if version == 19 && strings.Contains(text, "call void @llvm.dbg.") {
		args = append(args, "-write-experimental-debuginfo-iterators-to-bitcode=false") // otherwise it converts the calls to records
	}
	_, errs, ok := llvm(t, version, "llvm-as", args...)
	require.True(t, ok, errs)
	dump, errs, ok := llvm(t, version, "llvm-bcanalyzer", "-dump", file)
	require.True(t, ok, errs)
	var at string
	for _, m := range instRecord.FindAllStringSubmatch(dump, -1) {
		last := len(functions) - 1
		if last < 0 && m[1] != "FUNCTION_BLOCK" {
			continue // the record is in a block before the functions
		}
		switch m[1] {
		case "FUNCTION_BLOCK":
			functions = append(functions, []string{})
			at = ""
		case "DEBUG_LOC_AGAIN", "DEBUG_LOC":
			if m[1] == "DEBUG_LOC" {
				at = " " + m[2] + ":" + m[3]
			}
			functions[last][len(functions[last])-1] += at
		default:
			name, isInst := strings.CutPrefix(m[1], "INST_")
			if !isInst {
				name, isInst = recordCodes[m[1]]
			}
			if isInst {
				functions[last] = append(functions[last], name)
			}
		}
	}
	return functions
}

// recordNames maps operations to the names of their records, if they differ.
var recordNames = map[Op]string{
	OpFNeg: "UNOP", OpICmp: "CMP2", OpFCmp: "CMP2", OpSelect: "VSELECT", OpVAArg: "VAARG", OpGEP: "GEP",
	OpExtractElement: "EXTRACTELT", OpInsertElement: "INSERTELT", OpShuffleVector: "SHUFFLEVEC",
	OpExtractValue: "EXTRACTVAL", OpInsertValue: "INSERTVAL",
}

func recordsOf(blocks []*Block) []string {
	records := []string{}
	for _, b := range blocks {
		for _, in := range b.Instrs {
			name, ok := recordNames[in.Op]
			switch {
			case ok:
			case in.Op.Binary():
				name = "BINOP"
			case in.Op.Cast():
				name = "CAST"
			default:
				name = strings.ToUpper(in.Op.String())
			}
			if in.Flags&Atomic != 0 && (in.Op == OpLoad || in.Op == OpStore) {
				name += "ATOMIC"
			}
			if at, ok := in.Source(); ok {
				name += " " + strconv.Itoa(at.Line) + ":" + strconv.Itoa(at.Column)
			}
			records = append(records, name)
		}
	}
	return records
}
