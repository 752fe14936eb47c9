package ir

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/test/livetest"
)

// broken lists modules that every LLVM release rejects. A function body is the text inside the braces of body's function, from line 2 on.
var broken = []struct {
	name, src string
	line, col int
	msg       string
}{
	{"undefined local", body("%x = add i32 %a, 1\n  ret i32 %y"), 3, 11, "use of undefined value '%y'"},
	{"undefined block", body("br label %nowhere"), 2, 12, "use of undefined value '%nowhere'"},
	{"undefined global", body("%x = load i32, ptr @nope\n  ret i32 %x"), 2, 22, "use of undefined value '@nope'"},
	{"undefined global in initializer", "@a = global i32 1\n@b = global ptr @nope\n", 2, 17, "use of undefined value '@nope'"},
	{"undefined type", "@a = global i32 1\n@b = external global %nope\n", 2, 22, "use of undefined type named 'nope'"},
	{"undefined number", body("ret i32 %9"), 2, 11, "use of undefined value '%9'"},
	{"forward type mismatch", body("br label %b\nb:\n  %x = phi i32 [ %y, %c ], [ 0, %0 ]\n  br label %c\nc:\n  %y = add i64 1, 2\n  br label %b"), 7, 3, "instruction forward referenced with type 'i32', not 'i64'"},
	{"type mismatch", body("%x = add i64 1, 2\n  ret i32 %x"), 3, 11, "'%x' defined with type 'i64' but expected 'i32'"},
	{"value as block", body("%x = add i32 1, 2\n  br label %x"), 3, 12, "'%x' is not a basic block"},
	{"duplicate local", body("%x = add i32 1, 2\n  %x = add i32 1, 2\n  ret i32 %x"), 3, 3, "multiple definition of local value named 'x'"},
	{"duplicate block", body("br label %b\nb:\n  br label %b\nb:\n  ret i32 0"), 5, 1, "unable to create block named 'b': the name is taken"},
	{"duplicate function", "declare void @f()\ndeclare void @f()\n", 2, 14, "invalid redefinition of function 'f'"},
	{"duplicate global", "@f = global i32 0\n@f = global i32 0\n", 2, 1, "redefinition of global '@f'"},
	{"duplicate type", "%t = type { i32 }\n%t = type { i32 }\n", 2, 1, "redefinition of type '%t'"},
	{"duplicate argument", "declare void @g()\ndefine void @f(i32 %a, i32 %a) {\n  ret void\n}\n", 2, 28, "redefinition of argument '%a'"},
	{"no terminator", body("%x = add i32 1, 2"), 3, 1, "expected instruction opcode: the block has no terminator yet"},
	{"no terminator before label", body("%x = add i32 1, 2\nb:\n  ret i32 0"), 3, 1, "expected instruction opcode: the block has no terminator yet"},
	{"no block", "define void @f() {\n}\n", 2, 1, "function body requires at least one basic block"},
	{"no closing brace", "define void @f() {\n  ret void\n\ndefine void @g() {\n  ret void\n}\n", 4, 1, "expected '}': the body of '@f' has no end"},
	{"opening brace too many", body("%x = add i32 1, { 2\n  ret i32 %x"), 2, 19, "constant does not have type 'i32'"},
	{"closing brace too many", body("%x = add i32 1, }\n  ret i32 %x"), 2, 19, "expected a constant of type 'i32'"},
	{"missing bracket", "declare void @g(i32)\n" + body("call void @g(i32 %a\n  ret i32 0"), 4, 3, "expected ')' at end of arguments"},
	{"misspelled opcode", body("%x = ad i32 1, 2\n  ret i32 %x"), 2, 8, "expected instruction opcode, not 'ad'"},
	{"misspelled opcode after call", "declare void @g()\ndefine void @f() {\n  call void @g()\n  retn void\n}\n", 4, 3, "expected instruction opcode, not 'retn'"},
	{"misspelled top level", "declare void @g()\ndefin void @f() {\n}\n", 2, 1, "expected top-level entity"},
	{"number behind", body("%1 = add i32 1, 2\n  %1 = add i32 1, 2\n  ret i32 %1"), 3, 3, "value expected to be numbered '%2' or greater"},
	{"void with a name", "declare void @g()\ndefine void @f() {\n  %x = call void @g()\n  ret void\n}\n", 3, 3, "instructions returning void cannot have a name"},
	{"result type", body("ret i64 0"), 2, 7, "value doesn't match function result type 'i32'"},
	{"branch on i32", body("br i32 1, label %b, label %b\nb:\n  ret i32 0"), 2, 6, "branch condition must have 'i1' type, not 'i32'"},
	{"too many arguments", "declare void @g(i32)\ndefine void @f() {\n  call void (i32) @g(i32 1, i32 2)\n  ret void\n}\n", 3, 29, "too many arguments specified"},
	{"not enough arguments", "declare void @g(i32)\ndefine void @f() {\n  call void (i32) @g()\n  ret void\n}\n", 3, 19, "not enough parameters specified for call"},
	{"argument type", "declare void @g(i32)\ndefine void @f() {\n  call void (i32) @g(i64 1)\n  ret void\n}\n", 3, 22, "argument 1 is not of expected type 'i32' but 'i64'"},
	{"store through an integer", body("store i32 1, i32 %a\n  ret i32 0"), 2, 16, "operand must be a pointer, not 'i32'"},
	{"add of pointers", body("%x = add ptr null, null\n  ret i32 0"), 2, 8, "invalid operand type 'ptr' for add"},
	{"fadd of integers", body("%x = fadd i32 1, 2\n  ret i32 0"), 2, 8, "invalid operand type 'i32' for fadd"},
	{"invalid cast", body("%x = trunc i8 1 to i32\n  ret i32 0"), 2, 8, "invalid cast opcode for cast from 'i8' to 'i32'"},
	{"bitcast of another size", body("%x = bitcast i32 1 to double\n  ret i32 0"), 2, 8, "invalid cast opcode for cast from 'i32' to 'double'"},
	{"float does not fit", body("%x = fadd float 0.1, 1.0\n  ret i32 0"), 2, 19, "floating point constant invalid for type 'float': it does not fit exactly"},
	{"integer for float", body("%x = fadd float 1, 1.0\n  ret i32 0"), 2, 19, "integer constant must have integer type, not 'float'"},
	{"null integer", "declare void @g()\n@a = global i32 null\n", 2, 17, "invalid type for null constant: 'i32'"},
	{"array length", "declare void @g()\n@a = global [2 x i8] c\"abc\"\n", 2, 22, "constant expression type mismatch: got type '[3 x i8]' but expected '[2 x i8]'"},
	{"array elements", "declare void @g()\n@a = global [3 x i8] [i8 1, i8 2]\n", 2, 22, "constant of type '[3 x i8]' has 2 elements, not 3"},
	{"struct element", "declare void @g()\n@a = global { i8, i16 } { i8 1, i8 2 }\n", 2, 25, "element 1 of constant of type '{ i8, i16 }' has type 'i8'"},
	{"getelementptr into a scalar", body("%x = getelementptr i32, ptr null, i64 0, i64 1\n  ret i32 0"), 2, 8, "invalid getelementptr indices: 'i32' has no elements"},
	{"getelementptr field", body("%x = getelementptr { i32 }, ptr null, i64 0, i32 1\n  ret i32 0"), 2, 8, "invalid getelementptr indices: '{ i32 }' has no field 1"},
	{"extractvalue index", body("%x = extractvalue { i32 } undef, 1\n  ret i32 0"), 2, 8, "invalid indices: '{ i32 }' has no element 1"},
	{"duplicate case", body("switch i32 %a, label %b [\n    i32 1, label %b\n    i32 1, label %b\n  ]\nb:\n  ret i32 0"), 4, 5, "duplicate case value in switch"},
	{"case type", body("switch i32 %a, label %b [\n    i64 1, label %b\n  ]\nb:\n  ret i32 0"), 3, 5, "case value has type 'i64', not 'i32'"},
	{"predicate", body("%x = icmp lt i32 1, 2\n  ret i32 0"), 2, 13, "expected a predicate of icmp"},
	{"flag on the wrong instruction", body("%x = and nsw i32 1, 2\n  ret i32 0"), 2, 12, "expected a type"},
	{"string without end", "declare void @g()\n@a = global [3 x i8] c\"abc\n", 2, 23, "string has no end"},
	{"alignment", "declare void @g()\n@a = global i32 0, align 3\n", 2, 26, "alignment is not a power of two"},
	{"wide integer", "declare void @g()\n@a = global i99999999 0\n", 2, 13, "an integer has 1 to 8388608 bits"},
	{"data layout", "\ntarget datalayout = \"e-q:1\"\n", 2, 21, `data layout specification "q:1": is not known`},
	{"pointer to void", "declare void @g()\n@a = global void* null\n", 2, 17, "there are no pointers to 'void'"},
	{"atomic without ordering", body("%x = load atomic i32, ptr null, align 4\n  ret i32 %x"), 2, 33, "expected ordering on atomic instruction"},
	{"block address of no block", "@a = global ptr blockaddress(@f, %nope)\ndefine void @f() {\n  ret void\n}\n", 1, 34, "blockaddress of '%nope', which is not a block of that function"},
	{"function type of forward struct", "@a = external global %t\n%t = type i32\n", 2, 11, "forward references to non-struct type"},
	{"metadata after comma", body("ret i32 0, align 4"), 2, 14, "expected metadata after comma"},
}

func body(text string) string {
	return "define i32 @f(i32 %a) {\n  " + text + "\n}\n"
}

func reject(src string) error {
	m, err := Parse("broken.ll", []byte(src))
	if err == nil {
		err = m.Check()
	}
	return err
}

var reported = regexp.MustCompile(`broken\.ll:(\d+):(\d+): error`)

// TestRefusesWhatLLVMAsRefuses requires that a module that LLVM rejects is rejected at the line that LLVM names.
func TestRefusesWhatLLVMAsRefuses(t *testing.T) {
	livetest.Slow(t)
	for _, c := range broken {
		t.Run(c.name, func(t *testing.T) {
			err := reject(c.src)
			var where *Error
			require.True(t, errors.As(err, &where), "%v", err)
			require.Equal(t, fmt.Sprintf("%d:%d: %s", c.line, c.col, c.msg), fmt.Sprintf("%d:%d: %s", where.Line, where.Col, where.Msg))
			file := write(t, "broken.ll", c.src)
			for _, v := range versions {
				_, errs, ok := llvm(t, v, "llvm-as", append(opaque14(v), "-o", "/dev/null", file)...)
				require.False(t, ok, "llvm-as-%d takes it", v)
				if m := reported.FindStringSubmatch(errs); m != nil {
					line, err := strconv.Atoi(m[1])
					require.NoError(t, err)
					require.Equal(t, line, where.Line, "llvm-as-%d: %s", v, errs)
				}
			}
		})
	}
}
