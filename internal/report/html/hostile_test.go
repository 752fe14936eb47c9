package html

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/deopt/frame"
	"example.com/reframe/internal/machine"
	"example.com/reframe/internal/report/explain"
	"example.com/reframe/test/frametest"
	"example.com/reframe/test/livetest"
)

// nasty lists texts that act as markup or script if they are not escaped.
var nasty = []string{
	`<script>document.title="hit"</script>`, `</style><script>document.title="hit"</script>`, `"><img src=x onerror=document.title='hit'>`,
	`</title><svg onload=alert(1)>`, `--><b>x</b>`, `{{.Explanation}}`, `javascript:document.title='hit'`, `&lt;&#0;&amp;`, "\x1b[31m\x00\x07", "a\u202eb\u2066c", "\xff\xfe",
}

// escaped returns a text as a quoted name of LLVM IR.
func escaped(text string) string {
	var b strings.Builder
	for _, c := range []byte(text) {
		if c < ' ' || c > '~' || c == '"' || c == '\\' {
			fmt.Fprintf(&b, `\%02X`, c)
		} else {
			b.WriteByte(c)
		}
	}
	return b.String()
}

// TestHostileNames requires that names of functions and values from a target stay text. The page must contain each name, and no name may run a
// script, load a resource or become an element.
func TestHostileNames(t *testing.T) {
	var names []string
	for _, n := range nasty {
		if !strings.Contains(n, "\x00") { // a zero byte would end a symbol
			names = append(names, n)
		}
	}
	body, operands := "", ""
	for n, name := range names {
		body += fmt.Sprintf("  %%\"%s\" = add i64 %%a, %d\n", escaped(name), n)
		operands += fmt.Sprintf(", i64 %%\"%s\"", escaped(name))
	}
	function := names[0] + names[1] + "\u202e"
	text := strings.ReplaceAll(livetest.Start, "@work", `@"`+escaped(function)+`"`)
	module := livetest.Module(t, livetest.Prelude+fmt.Sprintf("define i64 @\"%s\"(i64 %%a) noinline {\n%s  %%r = call i64 @wait(i64 %%a)\n"+
		"  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 5, i32 0%s)\n  ret i64 %%r\n}\n", escaped(function), body, operands)+text)
	p := livetest.Lli(t, 19, module, "mcjit")
	v := frametest.Look(t, p, true, frametest.Known(t, p))
	page, file := drawn(t, v, explain.Question{Frame: -1})
	require.Len(t, page.Places[0].Values, len(names))

	tab := livetest.Chromium(t).Open(t, file, 1400, 1000)
	var title string
	tab.Eval(t, "document.title", &title)
	require.Contains(t, title, string(printed([]byte(function))))
	var shown []string
	tab.Eval(t, `[...document.querySelectorAll("tr.value > th bdi")].map(e => e.textContent)`, &shown)
	require.Len(t, shown, len(names))
	for n := range names {
		require.Equal(t, string(printed([]byte(page.Places[0].Values[n].Name))), shown[n])
		require.NotContains(t, shown[n], "\u202e")
	}
	require.Contains(t, shown[0], `<script>`)
	var foreign []string
	tab.Eval(t, `[...document.querySelectorAll("img, iframe, object, embed, b b, svg[onload], [onerror], [onload], script:not(:last-child)")].map(e => e.outerHTML)`, &foreign)
	require.Empty(t, foreign)
	var scripts int
	tab.Eval(t, "document.scripts.length", &scripts)
	require.Equal(t, 1, scripts)
	tab.Hover(t, "#v0 th")
	require.Contains(t, said(t, tab, "lit"), "values: "+shown[0])
	require.Empty(t, tab.Messages())
}

// TestHostileStrings requires that a page with hostile strings has the same elements as one with harmless strings.
func TestHostileStrings(t *testing.T) {
	p := livetest.Lli(t, 19, "vmsimple.ll", "mcjit")
	o := frametest.Known(t, p)
	v := frametest.Look(t, p, true, o)
	made := func(text string) *Page {
		e, err := explain.Explain(v, explain.Question{Frame: -1})
		require.NoError(t, err)
		at := &e.Places[0]
		e.Target.Notes, at.Notes, at.In.Why = []string{text}, []string{text}, text
		at.In.Symbol.Name, at.In.Section.Name, at.In.Mapping.Path, at.In.Module = text, text, text, text
		at.In.Source = []frame.Source{{Function: text, File: text}}
		at.Records[0].Why, at.Records[0].Name, at.Stack[0].Function, at.Stack[0].CFARule, at.Stack[0].Guess = text, text, text, text, text
		at.Code.Why, at.Code.Instructions[0].Text, at.Code.Instructions[0].Notes = text, text, []string{text}
		at.Carries = &explain.CarriesOn{Resume: &frame.Resume{Function: text, Block: text, After: text}, By: text, Exits: []explain.ExitTried{{Layout: text, To: text, When: []explain.WhenTried{{Why: text}}}}}
		x := &at.Values[0]
		x.Name, x.Variable, x.Type.Source, x.Value, x.Where, x.Origin, x.Sum, x.Reading, x.As = text, text, text, text, text, text, text, text, []string{text}
		at.VM = &frame.VM{Layout: text, Frames: []frame.VMFrame{{Method: text, Resume: text, Info: map[string]string{text: text}, Reason: text,
			Locals: []frame.VMValue{{Name: text, Type: text, Value: text, Slot: new(0)}, {Object: new(int64(4))}}, Extra: map[string]frame.VMValue{text: {Value: text}}}},
			Objects: []frame.VMObject{{ID: 4, Class: text, Reason: text, Fields: []frame.VMField{{VMValue: frame.VMValue{Name: text, Value: text}}}}}}
		return Of(v, e, nil)
	}
	b := livetest.Chromium(t)
	elements := func(text string) (list []string) {
		tab := b.Open(t, written(t, made(text)), 1400, 1000)
		tab.Eval(t, `[...document.querySelectorAll("*")].map(e => e.tagName + " " + e.getAttributeNames().join(" "))`, &list)
		require.Empty(t, tab.Messages(), "%q", text)
		return list
	}
	want := elements("harmless")
	for _, text := range nasty {
		require.Equal(t, want, elements(text), "%q", text)
	}
}

// TestHugeRecord requires that the page of a record with 10,000 values has the usual size, and reports the size of the omitted parts.
func TestHugeRecord(t *testing.T) {
	operands := strings.Repeat(", i64 5, i64 %a, i64 81985529216486895, i32 7", 2500)
	module := livetest.Module(t, livetest.Prelude+"define i64 @work(i64 %a) noinline {\n  %r = call i64 @wait(i64 %a)\n"+
		"  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 5, i32 0"+operands+")\n  %s = add i64 %a, %r\n  ret i64 %s\n}\n"+livetest.Start)
	p := livetest.Lli(t, 19, module, "mcjit")
	v := frametest.Look(t, p, true, frametest.Known(t, p))
	page, file := drawn(t, v, explain.Question{Frame: -1})
	info, err := os.Stat(file)
	require.NoError(t, err)
	require.LessOrEqual(t, info.Size(), int64(MaxSize))
	tab := livetest.Chromium(t).Open(t, file, 1400, 1000)
	var more []string
	tab.Eval(t, `[...document.querySelectorAll(".more")].map(e => e.textContent)`, &more)
	shown := len(page.Places[0].Values)
	require.Greater(t, shown, 50)
	require.Contains(t, more, fmt.Sprintf("and %d more values", 10000-shown))
	require.Contains(t, more, fmt.Sprintf("and %d more locations and live-outs", page.Places[0].Record.More))
	var rows int
	tab.Eval(t, `document.querySelectorAll("tr.location").length`, &rows)
	require.Equal(t, 10000, rows+page.Places[0].Record.More, "a stackmap has no live-outs")
	tab.Hover(t, "#v1 th")
	require.Contains(t, said(t, tab, "lit"), "values: %a")
	require.Empty(t, tab.Messages())
}

// TestFitted requires that a page that is too large is reduced until it fits, or is an error.
func TestFitted(t *testing.T) {
	p := &Page{Title: "x", Explanation: &explain.Explanation{}, limits: roomy}
	source := []frame.Source{{File: strings.Repeat("long ", 20)}}
	for len(source) < 20000 {
		source = append(source, source...)
	}
	p.Explanation.Places = []explain.Place{{In: explain.CodePlace{Source: source}}}
	p.Places = []*Place{{Place: &p.Explanation.Places[0]}}
	var out bytes.Buffer
	require.ErrorContains(t, p.Write(&out), "the limit is 1000000")
	require.Zero(t, out.Len())
	require.Equal(t, p.limits, p.limits.half())
}

// TestHostileLocations requires that arbitrary locations, addresses and memory give a page of the usual size, in bounded time.
func TestHostileLocations(t *testing.T) {
	p := livetest.Lli(t, 19, "jit_pp.ll", "mcjit")
	v := frametest.Look(t, p, true, frametest.Known(t, p))
	r := rand.New(rand.NewPCG(8, 26))
	offsets := []int32{0, 1, -1, 7, 8, -8, 63, 100, 1 << 12, math.MaxInt32, math.MinInt32}
	sizes := []int{0, 1, 3, 8, 16, 255, 4096, math.MaxUint16}
	registers := []uint16{0, 3, 6, 7, 12, 16, 17, 49, 82, 500, math.MaxUint16}
	kinds := []string{"Register", "Direct", "Indirect", "Constant", "ConstantIndex", ""}
	for range 60 {
		e, err := explain.Explain(v, explain.Question{Frame: -1})
		require.NoError(t, err)
		values := e.Places[0].Values
		for k := range values {
			values[k].Location = &frame.Location{Kind: kinds[r.IntN(len(kinds))], Offset: offsets[r.IntN(len(offsets))], Size: sizes[r.IntN(len(sizes))]}
			if r.IntN(4) > 0 {
				values[k].Location.DWARF = &registers[r.IntN(len(registers))]
			}
			values[k].Index = r.IntN(20) - 3
		}
		var memory machine.Memory
		if r.IntN(3) == 0 {
			memory = nothing{}
		}
		var out bytes.Buffer
		require.NoError(t, Of(v, e, memory).Write(&out))
		require.LessOrEqual(t, out.Len(), MaxSize)
	}
}

// nothing is unreadable memory.
type nothing struct{}

func (nothing) ReadMemory(p []byte, addr machine.Addr) error {
	return &machine.MemoryError{Addr: addr, Len: len(p), Why: "not mapped"}
}
