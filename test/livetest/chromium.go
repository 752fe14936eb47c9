package livetest

import (
	"bufio"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Browser is a headless Chromium, controlled by the DevTools protocol (chromedevtools.github.io/devtools-protocol) over pipes. It reads from
// descriptor 3 and writes to descriptor 4, and a zero byte ends each message. It ends with the test.
type Browser struct {
	to      *os.File
	mutex   sync.Mutex
	last    int
	waiting map[int]chan reply
	tabs    map[string]*Tab
	ended   chan struct{}
}

type reply struct {
	ID        int             `json:"id"`
	Result    json.RawMessage `json:"result"`
	Error     json.RawMessage `json:"error"`
	Method    string          `json:"method"`
	Params    json.RawMessage `json:"params"`
	SessionID string          `json:"sessionId"`
}

// Chromium starts the browser of Debian's chromium-headless-shell.
func Chromium(t testing.TB) *Browser {
	t.Helper()
	read, to, err := os.Pipe()
	require.NoError(t, err)
	from, write, err := os.Pipe()
	require.NoError(t, err)
	// Chromium cannot use its sandbox as root, and in a container /dev/shm may be too small for it.
	cmd := exec.Command(Tool(t, "chromium-headless-shell"), "--remote-debugging-pipe", "--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu", "--hide-scrollbars",
		"--disable-background-networking", "--force-color-profile=srgb", "--user-data-dir="+filepath.Join(t.TempDir(), "profile"))
	cmd.ExtraFiles = []*os.File{read, write}
	require.NoError(t, cmd.Start())
	_, _ = read.Close(), write.Close()
	b := &Browser{to: to, waiting: map[int]chan reply{}, tabs: map[string]*Tab{}, ended: make(chan struct{})}
	go b.listen(bufio.NewReader(from))
	t.Cleanup(func() {
		_ = to.Close() // this ends the browser
		late := time.AfterFunc(Patience, func() { _ = cmd.Process.Kill() })
		<-b.ended
		_ = cmd.Wait()
		late.Stop()
		_ = from.Close()
	})
	return b
}

// listen passes replies to their callers, and events to their tabs.
func (b *Browser) listen(from *bufio.Reader) {
	defer close(b.ended)
	for {
		text, err := from.ReadBytes(0)
		if err != nil {
			return
		}
		var r reply
		if json.Unmarshal(text[:len(text)-1], &r) != nil {
			continue
		}
		b.mutex.Lock()
		if r.ID != 0 {
			if c := b.waiting[r.ID]; c != nil {
				c <- r
			}
			delete(b.waiting, r.ID)
		} else if tab := b.tabs[r.SessionID]; tab != nil {
			tab.event(r.Method, r.Params)
		}
		b.mutex.Unlock()
	}
}

// call sends a command, waits for its reply, and decodes the result into into.
func (b *Browser) call(t testing.TB, session, method string, params, into any) {
	t.Helper()
	c := make(chan reply, 1)
	b.mutex.Lock()
	b.last++
	id := b.last
	b.waiting[id] = c
	b.mutex.Unlock()
	message := map[string]any{"id": id, "method": method}
	if params != nil {
		message["params"] = params
	}
	if session != "" {
		message["sessionId"] = session
	}
	text, err := json.Marshal(message)
	require.NoError(t, err)
	_, err = b.to.Write(append(text, 0))
	require.NoError(t, err)
	select {
	case r := <-c:
		require.Empty(t, string(r.Error), "%s", text)
		if into != nil {
			require.NoError(t, json.Unmarshal(r.Result, into))
		}
	case <-b.ended:
		require.Fail(t, "the browser has ended", "%s", text)
	case <-time.After(Patience):
		require.Fail(t, "the browser does not answer", "%s", text)
	}
}

// Tab is an open page.
type Tab struct {
	browser  *Browser
	session  string
	file     string
	messages []string    // protected by the browser's mutex
	loaded   chan string // the loader of each page that was loaded
	loader   string      // the loader of the current page
}

// Open opens a file in a window with the given size in pixels, and returns when it is loaded.
func (b *Browser) Open(t testing.TB, file string, width, height int) *Tab {
	t.Helper()
	var target struct{ TargetID string }
	b.call(t, "", "Target.createTarget", map[string]any{"url": "about:blank"}, &target)
	var attached struct{ SessionID string }
	b.call(t, "", "Target.attachToTarget", map[string]any{"targetId": target.TargetID, "flatten": true}, &attached)
	p := &Tab{browser: b, session: attached.SessionID, file: "file://" + file, loaded: make(chan string, 64)}
	b.mutex.Lock()
	b.tabs[p.session] = p
	b.mutex.Unlock()
	for _, domain := range []string{"Page", "Runtime", "Log", "Network"} {
		p.call(t, domain+".enable", nil, nil)
	}
	p.call(t, "Page.setLifecycleEventsEnabled", map[string]any{"enabled": true}, nil)
	p.Size(t, width, height)
	var way struct{ LoaderID string }
	p.call(t, "Page.navigate", map[string]any{"url": p.file}, &way)
	p.await(t, func(loader string) bool { return loader == way.LoaderID }) // the empty page at the start has a loader, too
	return p
}

// Loaded waits until a page that was reached by a link is loaded. No other call is possible before.
func (p *Tab) Loaded(t testing.TB) {
	t.Helper()
	p.await(t, func(loader string) bool { return loader != p.loader })
}

// await waits until a page is loaded for whose loader meant returns true.
func (p *Tab) await(t testing.TB, meant func(loader string) bool) {
	t.Helper()
	late := time.After(Patience)
	for {
		select {
		case loader := <-p.loaded:
			if meant(loader) {
				p.loader = loader
				return
			}
		case <-late:
			require.Fail(t, "the page is not loaded")
		}
	}
}

func (p *Tab) call(t testing.TB, method string, params, into any) {
	t.Helper()
	p.browser.call(t, p.session, method, params, into)
}

// event records the messages of the page and its network requests.
func (p *Tab) event(method string, params json.RawMessage) {
	switch method {
	case "Page.lifecycleEvent":
		var e struct{ LoaderID, Name string }
		_ = json.Unmarshal(params, &e)
		if e.Name == "load" {
			select {
			case p.loaded <- e.LoaderID:
			default: // no call of await is active
			}
		}
	case "Runtime.consoleAPICalled", "Runtime.exceptionThrown", "Log.entryAdded", "Page.javascriptDialogOpening":
		p.messages = append(p.messages, method+" "+string(params))
	case "Network.requestWillBeSent":
		var sent struct{ Request struct{ URL string } }
		_ = json.Unmarshal(params, &sent)
		if before, _, _ := strings.Cut(sent.Request.URL, "#"); before != p.file {
			p.messages = append(p.messages, "request for "+sent.Request.URL)
		}
	}
}

// Messages returns all console messages and errors of the page, and its network requests except that for its own file.
func (p *Tab) Messages() []string {
	p.browser.mutex.Lock()
	defer p.browser.mutex.Unlock()
	return append([]string(nil), p.messages...)
}

// Size sets the size of the window in pixels.
func (p *Tab) Size(t testing.TB, width, height int) {
	t.Helper()
	p.call(t, "Emulation.setDeviceMetricsOverride", map[string]any{"width": width, "height": height, "deviceScaleFactor": 1, "mobile": false}, nil)
}

// Media displays the page as on a medium ("screen", "print") with a preferred colour scheme ("light", "dark").
func (p *Tab) Media(t testing.TB, medium, scheme string) {
	t.Helper()
	p.call(t, "Emulation.setEmulatedMedia", map[string]any{"media": medium, "features": []any{map[string]any{"name": "prefers-color-scheme", "value": scheme}}}, nil)
}

// Eval evaluates an expression in the page, and decodes the value into into.
func (p *Tab) Eval(t testing.TB, expression string, into any) {
	t.Helper()
	var answer struct {
		Result           struct{ Value json.RawMessage }
		ExceptionDetails json.RawMessage
	}
	p.call(t, "Runtime.evaluate", map[string]any{"expression": expression, "returnByValue": true, "awaitPromise": true}, &answer)
	require.Empty(t, string(answer.ExceptionDetails), expression)
	if into != nil {
		require.NoError(t, json.Unmarshal(answer.Result.Value, into), expression)
	}
}

// Hover scrolls to the element that a selector matches, and moves the mouse to the middle of its first line.
func (p *Tab) Hover(t testing.TB, selector string) {
	t.Helper()
	x, y := p.middle(t, selector)
	p.call(t, "Input.dispatchMouseEvent", map[string]any{"type": "mouseMoved", "x": x, "y": y}, nil)
}

// Click moves the mouse as Hover does, and clicks the left button.
func (p *Tab) Click(t testing.TB, selector string) {
	t.Helper()
	p.Hover(t, selector)
	x, y := p.middle(t, selector)
	for _, what := range []string{"mousePressed", "mouseReleased"} {
		p.call(t, "Input.dispatchMouseEvent", map[string]any{"type": what, "x": x, "y": y, "button": "left", "clickCount": 1}, nil)
	}
}

func (p *Tab) middle(t testing.TB, selector string) (x, y float64) {
	t.Helper()
	var at []float64
	p.Eval(t, fmt.Sprintf(`(() => {
		const e = document.querySelector(%q);
		if (!e) return null;
		e.scrollIntoView({ block: "center", inline: "center", behavior: "instant" });
		const r = e.getClientRects()[0];
		return [r.x + r.width / 2, r.y + r.height / 2];
	})()`, selector), &at)
	require.Len(t, at, 2, selector)
	return at[0], at[1]
}

// Key presses a key by its name, such as ArrowDown.
func (p *Tab) Key(t testing.TB, name string) {
	t.Helper()
	codes := map[string]int{"Tab": 9, "Enter": 13, "Escape": 27, "ArrowLeft": 37, "ArrowUp": 38, "ArrowRight": 39, "ArrowDown": 40}
	require.Contains(t, codes, name)
	for _, what := range []string{"rawKeyDown", "keyUp"} {
		p.call(t, "Input.dispatchKeyEvent", map[string]any{"type": what, "key": name, "code": name, "windowsVirtualKeyCode": codes[name]}, nil)
	}
}

// Screenshot returns a PNG picture of the window, or of the whole page.
func (p *Tab) Screenshot(t testing.TB, whole bool) []byte {
	t.Helper()
	params := map[string]any{"format": "png", "captureBeyondViewport": whole}
	if whole {
		var size []float64
		p.Eval(t, `[document.documentElement.scrollWidth, document.documentElement.scrollHeight]`, &size)
		params["clip"] = map[string]any{"x": 0, "y": 0, "width": size[0], "height": size[1], "scale": 1}
	}
	var shot struct{ Data string }
	p.call(t, "Page.captureScreenshot", params, &shot)
	png, err := base64.StdEncoding.DecodeString(shot.Data)
	require.NoError(t, err)
	return png
}

// PDF returns the printed page.
func (p *Tab) PDF(t testing.TB) []byte {
	t.Helper()
	var printed struct{ Data string }
	p.call(t, "Page.printToPDF", map[string]any{"printBackground": false}, &printed)
	pdf, err := base64.StdEncoding.DecodeString(printed.Data)
	require.NoError(t, err)
	return pdf
}
