package cfi

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/internal/machine"
	"example.com/reframe/test/livetest"
)

func TestRuleText(t *testing.T) {
	arch := machine.AMD64
	expression := func(code ...byte) Expression { return Expression{&operations{order: arch.Order, code: code}} }
	require.Equal(t, "rsp+16", CFARule{Kind: CFARegister, Register: 7, Offset: 16}.Text(arch))
	require.Equal(t, "rbp-8", CFARule{Kind: CFARegister, Register: 6, Offset: -8}.Text(arch))
	require.Equal(t, "undefined", CFARule{}.Text(arch))
	require.Equal(t, "DW_OP_breg7 (rsp): 8; DW_OP_deref", CFARule{Kind: CFAExpression, Expression: expression(opBreg0+7, 8, opDeref)}.Text(arch))
	for want, rule := range map[string]RegisterRule{
		"rbx by the calling convention":  {},
		"rbx not kept":                   {Kind: RuleUndefined},
		"rbx unchanged":                  {Kind: RuleSameValue},
		"rbx at [CFA-16]":                {Kind: RuleOffset, Offset: -16},
		"rbx = CFA+8":                    {Kind: RuleValOffset, Offset: 8},
		"rbx in r12":                     {Kind: RuleRegister, Register: 12},
		"rbx at [DW_OP_breg6 (rbp): -8]": {Kind: RuleExpression, Expression: expression(opBreg0+6, 0x78)},
		"rbx = DW_OP_lit3":               {Kind: RuleValExpression, Expression: expression(opLit0 + 3)},
	} {
		require.Equal(t, want, rule.Text(arch, 3))
	}
	// An expression that was made, and not read from a section, has a text too.
	require.Equal(t, "DW_OP_bregx: 7 (rsp) 40; DW_OP_deref", RegisterPlus(7, 40).Deref().Text(arch))
	require.Empty(t, Expression{}.Text(arch))
	require.Contains(t, expression(opLit0, 0xff).Text(arch), "DW_OP_lit0; (")
	require.True(t, strings.HasSuffix(expression(make([]byte, 1)...).Text(arch), ")"), "no operation is 0")
	require.Len(t, strings.Split(expression(bytes.Repeat([]byte{opNop}, 1<<20)...).Text(arch), "; "), maxSteps+1)
	require.Contains(t, expression(opConst8u, 1).Text(arch), "(")
}

var printedExpression = regexp.MustCompile(`DW_CFA_def_cfa_expression \((.*)\)`)

// TestExpressionTextAgainstReadelf requires the same text as readelf's for an expression with all operations.
func TestExpressionTextAgainstReadelf(t *testing.T) {
	var code []byte
	add := func(b ...byte) { code = append(code, b...) }
	for n := range 0x100 {
		switch op := byte(n); {
		case op >= opBreg0 && op <= opBreg0+16:
			add(op, 0x78)
		case op == opBregx:
			add(op, 7, 0xc8, 0x60)
		case op == opAddr, op == opConst8u, op == opConst8s:
			add(op, 0xf0, 1, 2, 3, 4, 5, 6, 0x87)
		case op == opConst4u, op == opConst4s:
			add(op, 0xf0, 1, 2, 0x83)
		case op == opConst2u, op == opConst2s:
			add(op, 0xf0, 0x81)
		case op == opSkip, op == opBra:
			add(op, 2, 0)
		case op == opConst1u, op == opConst1s, op == opPick, op == opDerefSize:
			add(op, 0x83)
		case op == opConstu, op == opConsts, op == opPlusUconst:
			add(op, 0xc8, 0x60)
		case op >= opLit0 && op <= opLit31 || operationNames[op] != "":
			add(op)
		}
	}
	escape := append(appendULEB([]byte{0x0f}, uint64(len(code))), code...) // DW_CFA_def_cfa_expression
	var text strings.Builder
	fmt.Fprint(&text, ".globl f\n.type f,@function\nf:\n.cfi_startproc\n.cfi_escape ")
	for n, b := range escape {
		if n > 0 {
			text.WriteByte(',')
		}
		fmt.Fprintf(&text, "%#x", b)
	}
	fmt.Fprint(&text, "\nret\n.cfi_endproc\n.size f,.-f\n")
	source := filepath.Join(t.TempDir(), "f.s")
	require.NoError(t, os.WriteFile(source, []byte(text.String()), 0o600))
	library := shared(t, source)

	table, err := NewTable(sectionsOf(t, library, 0))
	require.NoError(t, err)
	symbol := regexp.MustCompile(`(?m)^([0-9a-f]+) T f$`).FindSubmatch([]byte(livetest.Printed(t, "nm", library)))
	require.NotNil(t, symbol)
	fde, err := table.Find(address(t, string(symbol[1])))
	require.NoError(t, err)
	row, err := fde.Rules(fde.Start)
	require.NoError(t, err)
	var spelled []string
	for _, m := range printedExpression.FindAllSubmatch([]byte(livetest.Printed(t, "readelf", "--wide", "--debug-dump=frames", library)), -1) {
		spelled = append(spelled, string(m[1]))
	}
	require.Contains(t, spelled, row.CFA.Text(machine.AMD64))
}
