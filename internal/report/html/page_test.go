package html

import (
	"bytes"
	"fmt"
	"image"
	"image/png"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/deopt"
	"example.com/reframe/deopt/frame"
	"example.com/reframe/internal/llvm/ir"
	"example.com/reframe/internal/report/explain"
	"example.com/reframe/test/frametest"
	"example.com/reframe/test/livetest"
)

// described is a script that lists the elements of a class: the part of the page that contains each, and its text.
const described = `(name => {
  const said = e => {
    const part = e.closest("section").getAttribute("aria-labelledby");
    if (e.matches("tr.value")) return "values: " + e.querySelector("bdi").textContent;
    if (e.matches("tr")) return part + ": " + e.lastElementChild.textContent;
    if (e.matches("g.box")) return part + ": " + e.querySelector("text").textContent;
    if (part == "registers" && name == "via") return part + ": " + e.closest("tr").querySelector("th").textContent;
    if (e.matches(".graph a")) return part + ": " + [...e.querySelectorAll("text")].map(t => t.textContent).join(" ");
    if (e.matches("a")) return part + ": " + e.querySelector("title").textContent;
    return part + ": " + e.textContent.trim();
  };
  return [...new Set([...document.querySelectorAll("." + name)].map(said))];
})`

// said returns the texts of the elements of a CSS class.
func said(t *testing.T, tab *livetest.Tab, class string) (list []string) {
	t.Helper()
	tab.Eval(t, fmt.Sprintf("%s(%q)", described, class), &list)
	return list
}

// TestPagesOfExits requires that each page of the six kinds of exits is small, logs no error and makes no network request. Mouse and keyboard must
// highlight a value in all parts.
func TestPagesOfExits(t *testing.T) {
	livetest.Slow(t) // six programs, one of them in QEMU, and a browser
	b := livetest.Chromium(t)
	for _, x := range exits {
		t.Run(x.name, func(t *testing.T) {
			p, file := drawn(t, x.view(t), explain.Question{Frame: -1})
			info, err := os.Stat(file)
			require.NoError(t, err)
			require.Less(t, info.Size(), int64(MaxSize))
			tab := b.Open(t, file, 1400, 1000)
			require.NotEmpty(t, p.Places[0].Values)
			for k := range p.Places[0].Values {
				v := &p.Places[0].Values[k]
				name := v.called()
				row := "#" + v.Key
				tab.Hover(t, row+" th")
				lit, via := said(t, tab, "lit"), said(t, tab, "via")
				if want, ok := x.lit[name]; ok {
					for _, line := range want {
						require.Contains(t, lit, line, name)
					}
					if _, shared := strings.CutPrefix(name, "%"); shared && !slices.ContainsFunc(want, func(s string) bool { return strings.HasPrefix(s, "VM") }) {
						require.ElementsMatch(t, want, lit, name)
					}
				}
				if want, ok := x.via[name]; ok {
					require.ElementsMatch(t, want, via, name)
				}
				consistent(t, v, lit)

				// The keyboard must highlight the same elements.
				tab.Hover(t, "h1")
				require.Empty(t, said(t, tab, "lit"))
				tab.Eval(t, fmt.Sprintf("document.querySelector(%q).focus()", row), nil)
				require.Equal(t, lit, said(t, tab, "lit"), name)
				places := 0
				tab.Eval(t, fmt.Sprintf("document.querySelectorAll('[data-k~=%s]').length", v.Key), &places)
				for range places {
					tab.Key(t, "ArrowRight")
					require.Subset(t, said(t, tab, "lit"), lit, "at another place of the same value")
				}
				var back bool
				tab.Eval(t, fmt.Sprintf("document.activeElement.id == %q", v.Key), &back)
				require.True(t, back, "all places were passed")
				tab.Key(t, "Escape")
				require.Empty(t, said(t, tab, "lit"))
			}
			for name := range x.lit {
				require.True(t, slices.ContainsFunc(p.Places[0].Values, func(v Value) bool { return v.Name == name || name == fmt.Sprintf("#%d", v.Index) && v.Name == "" }), name)
			}
			require.Empty(t, tab.Messages())
			shown(t, x.name, tab.Screenshot(t, true))
		})
	}
}

// consistent compares the highlighted elements of a value with its explanation.
func consistent(t *testing.T, v *Value, lit []string) {
	t.Helper()
	has := func(part string) (texts []string) {
		for _, s := range lit {
			if text, ok := strings.CutPrefix(s, part+": "); ok {
				texts = append(texts, text)
			}
		}
		return texts
	}
	require.Len(t, has("values"), 1)
	switch {
	case v.Location == nil:
		require.Empty(t, has("record"))
	case v.Location.Kind == "Indirect" && v.Status == frame.OK:
		require.Contains(t, has("stack"), v.Raw)
	case v.Location.Kind == "Register" && v.Status == frame.OK:
		digits := strings.Fields(v.Raw)
		if len(digits) > 8 { // a vector, in the order of memory
			require.Equal(t, []string{v.Raw}, has("registers"))
			break
		}
		slices.Reverse(digits)
		require.Equal(t, []string{strings.Join(digits, "")}, has("registers"))
	case v.Location.Kind == "Register":
		require.Equal(t, []string{"unavailable: " + v.Reason}, has("registers"))
	}
	if v.Location != nil {
		require.NotEmpty(t, has("record"))
		require.Contains(t, has("record")[0], v.Location.Constant)
	}
}

// TestLinks requires that every link has a target. A click on a link from a value to its location must scroll to the location and highlight the
// value.
func TestLinks(t *testing.T) {
	b := livetest.Chromium(t)
	x := exits[0]
	p, file := drawn(t, x.view(t), explain.Question{Frame: -1})
	tab := b.Open(t, file, 1400, 700)
	var broken []string
	tab.Eval(t, `[...document.querySelectorAll("a[href]")].map(a => a.getAttribute("href")).filter(h => h[0] != "#" || !document.getElementById(h.slice(1)))`, &broken)
	require.Empty(t, broken)
	var twice []string
	tab.Eval(t, `[...document.querySelectorAll("[id]")].map(e => e.id).filter((id, n, all) => all.indexOf(id) != n)`, &twice)
	require.Empty(t, twice)
	clicked := 0
	for _, v := range p.Places[0].Values {
		for n, link := range v.Links {
			tab.Click(t, fmt.Sprintf("#%s .links a:nth-of-type(%d)", v.Key, n+1))
			var at struct {
				Hash   string
				InView bool
			}
			tab.Eval(t, `(() => {
				const r = document.getElementById(location.hash.slice(1)).getBoundingClientRect();
				return { hash: location.hash, inView: r.top >= 0 && r.bottom <= innerHeight };
			})()`, &at)
			require.Equal(t, link.To, at.Hash)
			require.True(t, at.InView, link.To)
			tab.Hover(t, "h1")
			var lit bool
			tab.Eval(t, fmt.Sprintf("document.getElementById(%q).classList.contains('lit')", v.Key), &lit)
			require.True(t, lit, "it stays lit")
			clicked++
		}
	}
	require.Equal(t, 2+3*3, clicked, "a constant is in the record and the IR, the others in memory too")
	// The Tab key moves through the values, and highlights each.
	tab.Eval(t, "document.activeElement.blur(); scrollTo(0, 0); location.hash = ''", nil)
	tab.Click(t, "h1")
	var came []string
	for range 40 {
		tab.Key(t, "Tab")
		var id string
		tab.Eval(t, "document.activeElement.id", &id)
		if id != "" {
			came = append(came, id)
			require.Contains(t, said(t, tab, "lit"), "values: "+p.Places[0].Values[len(came)-1].called())
		}
		if len(came) == len(p.Places[0].Values) {
			break
		}
	}
	require.Equal(t, []string{"v0", "v1", "v2", "v3"}, came)
	tab.Key(t, "ArrowUp")
	require.Contains(t, said(t, tab, "lit"), "values: %acc", "up to the value before")
	tab.Key(t, "Enter")
	tab.Hover(t, "h1")
	require.Contains(t, said(t, tab, "lit"), "values: %acc", "it stays lit")
	tab.Hover(t, "#v3 th")
	// The line at the bottom must also link to the highlighted elements.
	tab.Click(t, "#inspector a")
	var hash string
	tab.Eval(t, "location.hash", &hash)
	require.Equal(t, "#v3", hash)
	require.Empty(t, tab.Messages())
}

// contrasts is a script that returns the text with the least contrast to its background, and that contrast (WCAG 2.1, 1.4.3 and "relative
// luminance").
const contrasts = `(() => {
  const number = c => { const m = c.match(/[\d.]+/g).map(Number); return c.startsWith("color(") ? [m[0]*255, m[1]*255, m[2]*255, m[3] ?? 1] : [m[0], m[1], m[2], m[3] ?? 1]; };
  const light = c => { const [r, g, b] = c.slice(0, 3).map(x => { x /= 255; return x <= .03928 ? x / 12.92 : ((x + .055) / 1.055) ** 2.4; }); return .2126*r + .7152*g + .0722*b; };
  const ground = e => {
    for (; e; e = e.parentElement) {
      const box = e.matches("svg .box") ? e.querySelector("rect") : null;
      const row = e.matches("svg a.lit") ? e.querySelector("rect") : null;
      const c = number(getComputedStyle(box || row || e)[box || row ? "fill" : "backgroundColor"]);
      if (c[3] > 0) return c;
    }
    return [255, 255, 255, 1];
  };
  let least = [99, ""];
  const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let n; n = texts.nextNode(); ) {
    const e = n.parentElement;
    if (!n.data.trim() || e.closest("script, style, title") || !e.getClientRects().length) continue;
    const ink = light(number(getComputedStyle(e)[e.closest("svg") ? "fill" : "color"])), paper = light(ground(e));
    const c = (Math.max(ink, paper) + .05) / (Math.min(ink, paper) + .05);
    if (c < least[0]) least = [c, n.data];
  }
  return { least: least[0], text: least[1] };
})()`

// TestLooks requires that in light, dark and print style all text is readable, highlighted or not. A page must be as wide as the window, and a
// highlighted value must differ visibly.
func TestLooks(t *testing.T) {
	livetest.Slow(t) // pictures of a whole page are large
	b := livetest.Chromium(t)
	for _, x := range exits {
		if x.name != "patchpoint" && x.name != "vm" {
			continue
		}
		_, file := drawn(t, x.view(t), explain.Question{Frame: -1})
		tab := b.Open(t, file, 1400, 1000)
		grounds := map[string]string{}
		for _, medium := range [][2]string{{"screen", "light"}, {"screen", "dark"}, {"print", "light"}, {"print", "dark"}} {
			tab.Media(t, medium[0], medium[1])
			for _, hover := range []string{"h1", "#v4 th"} {
				tab.Hover(t, hover)
				var c struct {
					Least float64
					Text  string
				}
				tab.Eval(t, contrasts, &c)
				require.GreaterOrEqual(t, c.Least, 4.5, "%v %s: %s", medium, hover, c.Text)
			}
			for _, width := range []int{1800, 1400, 1000, 700, 400} {
				tab.Size(t, width, 1000)
				var wide float64
				tab.Eval(t, "document.documentElement.scrollWidth", &wide)
				require.LessOrEqual(t, wide, float64(width), "%v", medium)
			}
			tab.Size(t, 1400, 1000)
			var ground string
			tab.Eval(t, "getComputedStyle(document.body).backgroundColor", &ground)
			grounds[strings.Join(medium[:], " ")] = ground
			shown(t, x.name+" "+medium[0]+" "+medium[1], tab.Screenshot(t, true))
		}
		require.NotEqual(t, grounds["screen light"], grounds["screen dark"])
		require.Equal(t, grounds["print light"], grounds["print dark"], "paper is white whatever one likes on a screen")

		// On the screen the first row changes its colour, and the second does not.
		tab.Media(t, "screen", "light")
		tab.Eval(t, "document.documentElement.style.scrollBehavior = 'auto'; document.getElementById('v0').scrollIntoView({ block: 'center' })", nil)
		var row, other []float64
		tab.Eval(t, "(r => [r.x + 2, r.y + 2])(document.getElementById('v0').getBoundingClientRect())", &row)
		tab.Eval(t, "(r => [r.x + 2, r.y + r.height / 2])(document.getElementById('v1').getBoundingClientRect())", &other)
		tab.Eval(t, "document.getElementById('v0').focus({ preventScroll: true })", nil)
		after := picture(t, tab.Screenshot(t, false))
		require.Equal(t, [3]uint32{0xff, 0xd7, 0x5e}, pixel(after, row))
		require.Equal(t, [3]uint32{0xff, 0xff, 0xff}, pixel(after, other))
		tab.Key(t, "Escape")
		require.Equal(t, [3]uint32{0xff, 0xff, 0xff}, pixel(picture(t, tab.Screenshot(t, false)), row))

		require.True(t, bytes.HasPrefix(tab.PDF(t), []byte("%PDF-")))
		require.Empty(t, tab.Messages())
	}
}

func picture(t *testing.T, data []byte) image.Image {
	t.Helper()
	img, err := png.Decode(bytes.NewReader(data))
	require.NoError(t, err)
	return img
}

// pixel returns the colour of a point.
func pixel(img image.Image, at []float64) [3]uint32 {
	r, g, b, _ := img.At(int(at[0]), int(at[1])).RGBA()
	return [3]uint32{r >> 8, g >> 8, b >> 8}
}

// TestEveryFrame requires a page for every frame of every program, with or without a record. Ids on a page must be unique, and each link must have a
// target.
func TestEveryFrame(t *testing.T) {
	livetest.Slow(t) // some hundred pages
	for _, program := range []string{"jit_pp.ll", "jit_sp.ll", "deoptimize.ll", "chain.ll", "stop_at.ll", "false_match.ll", "vmsimple.ll", "vmjeandle.ll"} {
		p := livetest.Lli(t, 19, program, "mcjit")
		v := frametest.Look(t, p, true, frametest.Known(t, p))
		for _, f := range v.Threads[0].Frames {
			e, err := explain.Explain(v, explain.Question{Frame: f.Index})
			require.NoError(t, err)
			var out bytes.Buffer
			require.NoError(t, Of(v, e, nil).Write(&out))
			require.LessOrEqual(t, out.Len(), MaxSize)
			linked(t, out.String(), fmt.Sprintf("%s #%d", program, f.Index))
		}
		v.Target().Release()
	}
}

var (
	anID   = regexp.MustCompile(`\bid="([^"]*)"`)
	anHref = regexp.MustCompile(`\bhref="#([^"]*)"`)
)

// linked requires that ids are unique, and that each link has a target.
func linked(t *testing.T, page, what string) {
	t.Helper()
	ids := map[string]bool{}
	for _, m := range anID.FindAllStringSubmatch(page, -1) {
		require.False(t, ids[m[1]], "%s: %s", what, m[1])
		ids[m[1]] = true
	}
	for _, m := range anHref.FindAllStringSubmatch(page, -1) {
		require.True(t, ids[m[1]], "%s: %s", what, m[1])
	}
}

// TestTwoPlaces requires that the page of a record at two places shows both, one of them with the frame.
func TestTwoPlaces(t *testing.T) {
	include := "-I" + filepath.Join("..", "..", "demo", "target")
	p := livetest.C(t, "unregistered.c", []string{include}, livetest.Object(t, 19, "host_mod.ll"))
	m, err := ir.ParseFile(livetest.Testdata(t, "programs", "host_mod.ll"))
	require.NoError(t, err)
	v := frametest.Look(t, p, true, deopt.Options{Modules: []*ir.Module{m}})
	id := uint64(31)
	page, file := drawn(t, v, explain.Question{Record: &id, Frame: -1})
	require.Len(t, page.Places, 2)
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	linked(t, string(text), "two places")
	require.Equal(t, 2, strings.Count(string(text), "<main>"))
	require.Equal(t, 1, strings.Count(string(text), "No frame stands here"))
	require.Equal(t, 1, strings.Count(string(text), `id="stack"`))
	require.Contains(t, string(text), "its place is the start of its region")
}
