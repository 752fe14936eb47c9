package html

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"fmt"
	"html/template"
	"path"
	"strings"
	"unicode"

	"example.com/reframe/deopt/frame"
	"example.com/reframe/internal/machine/names"
)

//go:embed page.html book.html page.css page.js
var files embed.FS

// embedded returns the text of an embedded file.
func embedded(name string) string {
	text, err := files.ReadFile(name)
	if err != nil {
		panic(err) // impossible: the compiler has embedded the file
	}
	return string(text)
}

// pages holds the templates. The style sheet and the script are inserted unchanged: the policy of the page has their hashes.
var pages = template.Must(template.New("").Funcs(template.FuncMap{
	"style":  func() template.CSS { return template.CSS(embedded("page.css")) },
	"script": func() template.JS { return template.JS(embedded("page.js")) },
	"policy": policy,
	"cut":    cut,
	"base":   path.Base,
	"short":  names.Short,
	"join":   func(list []string) string { return strings.Join(list, ", ") },
	"count":  count,
	"hex":    func(n *uint64) string { return fmt.Sprintf("%#x", *n) },
	"few":    func(n int) int { return min(n, fewest) },
	"beyond": func(n int) int { return max(0, n-fewest) },
	"words":  func(m frame.Moment) string { return strings.ReplaceAll(string(m), "-", " ") },
}).ParseFS(files, "page.html", "book.html"))

// policy returns the page's Content-Security-Policy. It allows only this package's script, and loads nothing.
func policy() string {
	hash := func(name string) string {
		sum := sha256.Sum256([]byte(embedded(name)))
		return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
	}
	return fmt.Sprintf("default-src 'none'; style-src %s; script-src %s; base-uri 'none'; form-action 'none'", hash("page.css"), hash("page.js"))
}

// fewest bounds the shown notes, exits of a layout and skipped frames: a page usually has fewer.
const fewest = 64

// maxText bounds a name, in runes.
const maxText = 300

// cut shortens a text to [maxText].
func cut(s any) string {
	text := fmt.Sprint(s)
	if len(text) <= maxText {
		return text
	}
	return short(text, maxText)
}

// short returns a text of at most most runes.
func short(text string, most int) string {
	runes := []rune(text)
	if len(runes) <= most {
		return text
	}
	return string(runes[:most-1]) + "…"
}

// printed replaces all unprintable characters of a page by U+FFFD: text of a target may contain control characters or change the direction of text.
// It works on the whole page, so that it misses no part.
func printed(page []byte) []byte {
	return bytes.Map(func(r rune) rune {
		if r == '\n' || unicode.IsPrint(r) {
			return r
		}
		return '\uFFFD'
	}, page)
}

// count returns n with its noun, such as "1 record" or "2 records".
func count(n any, what string) string {
	text := fmt.Sprint(n)
	if text == "1" {
		return "1 " + what
	}
	return text + " " + what + "s"
}
