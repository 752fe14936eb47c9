package jsonat

import (
	"bytes"
	"strings"
	"testing"
	"unicode"

	"github.com/stretchr/testify/require"
)

type inner struct {
	Count *uint64 `json:"count,omitempty"`
	Small int8    `json:"small"`
	Name  string  `json:"name"`
}

type outer struct {
	Schema string  `json:"schema"`
	List   []inner `json:"list"`
	One    inner   `json:"one"`
	Not    string  `json:"-"`
	hidden string
}

// TestDecode requires the position of each mistake, counted by hand.
func TestDecode(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ text, want string }{
		{`{"schema":"x","list":[{"count":1,"small":-3,"name":"n"}],"one":{}}` + "\n", ""},
		{"", "1:1: unexpected end of the text"},
		{"{\n", "2:1: unexpected end of the text"},
		{"{\n  \"schema\": 7x", "2:14: invalid character 'x' after object key:value pair"},
		{"{} {}", "1:4: unexpected text after the value"},
		{"{}\n\n]", "3:1: unexpected text after the value"},
		{"{\n \"list\": [\n  {\"name\": \"a\"},\n  {\"nmae\": \"b\"}\n ]\n}", "4:4: list[1].nmae: unknown member; expected one of count, small, name"},
		{"{\"list\": [], \"hidden\": 1}", "1:14: hidden: unknown member; expected one of schema, list, one"},
		{"{\"ä\": [], \"Not\": \"x\"}", "1:2: ä: unknown member; expected one of schema, list, one"},
		{"{\"one\": {\"\\u001b[31m\": 1}}", `1:10: one."\x1b[31m": unknown member; expected one of count, small, name`},
		// Both objects have a member count, but only the type of the inner one allows it.
		{"{\"one\": {\"count\": 1},\n \"count\": 1}", "2:2: count: unknown member; expected one of schema, list, one"},
		{"{\"one\":\n  {\"name\": \"äöü\", \"count\": \"1\"}}", "2:28: one.count: expected an unsigned integer of 64 bits, got a string"},
		{"{\"list\": [{}, {\"count\": -1}]}", "1:25: list[1].count: expected an unsigned integer of 64 bits, got the number -1"},
		{"{\"one\": {\"small\": 200}}", "1:19: one.small: expected an integer of 8 bits, got the number 200"},
		{"{\"one\": {\"small\": 1.5}}", "1:19: one.small: expected an integer of 8 bits, got the number 1.5"},
		{"{\"list\": {\"a\": 1}}", "1:10: list: expected an array, got an object"},
		{"{\"list\": [\n[]]}", "2:1: list[0]: expected an object, got an array"},
		{"[]", "1:1: expected an object, got an array"},
		{"{\"schema\": true}", "1:12: schema: expected a string, got true or false"},
	} {
		err := Decode([]byte(c.text), &outer{hidden: ""})
		if c.want == "" {
			require.NoError(t, err)
			continue
		}
		require.EqualError(t, err, c.want, c.text)
	}
}

func TestFind(t *testing.T) {
	t.Parallel()
	text := []byte("{\n  \"a\": [ {\"b\": 1},\n  {\"b\": {\"c\": null}} ],\n \"ab\": 2 }")
	for path, want := range map[string]Place{
		"": {1, 1}, "a": {2, 8}, "a[0]": {2, 10}, "a[0].b": {2, 16}, "a[1].b.c": {3, 15}, "ab": {4, 8},
		"a[1].b.d": {3, 9}, "a[7]": {2, 8}, "abc": {1, 1}, "a[0].b.c": {2, 16},
	} {
		require.Equal(t, []Place{want}, Find(text, path), path)
	}
	require.Equal(t, []Place{{4, 8}, {1, 1}, {2, 16}}, Find(text, "ab", "", "a[0].b"))
}

func TestDeep(t *testing.T) {
	t.Parallel()
	deep := bytes.Repeat([]byte("["), 5<<20)
	require.Equal(t, []Place{{1, 1}}, Find(deep, "x"))
	require.EqualError(t, Decode(deep, &outer{}), "1:10001: invalid character '[' exceeded max depth")
}

// FuzzDecode requires that any text decodes, or gives an error that is safe to print and has a position in the text.
func FuzzDecode(f *testing.F) {
	for _, text := range []string{`{"list":[{"count":1}]}`, `{"one":{"x":[[{}]]}}`, "{\n\"schema\":\x00", `{"list":[1,{"name":{}}]}`, `[[[[`, `{"\u001b":1}`} {
		f.Add([]byte(text), "list[0].name")
	}
	f.Fuzz(func(t *testing.T, text []byte, path string) {
		place := Find(text, path)[0]
		require.Positive(t, place.Line)
		require.Positive(t, place.Column)
		err := Decode(text, &outer{})
		if err == nil {
			return
		}
		at, ok := err.(*Error)
		require.True(t, ok)
		lines := strings.Split(string(text), "\n")
		require.LessOrEqual(t, at.Line, len(lines))
		require.LessOrEqual(t, at.Column, len(lines[at.Line-1])+1)
		require.Equal(t, -1, strings.IndexFunc(at.Path, unicode.IsControl), "%q", at.Path)
	})
}
