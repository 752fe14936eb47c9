package text

import (
	"encoding/json"
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/internal/static/maps"
)

// full sets each member of a value: a list gets two elements, a string gets text.
func full(v reflect.Value, text string) {
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		full(v.Elem(), text)
	case reflect.Struct:
		for n := range v.NumField() {
			full(v.Field(n), text)
		}
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		full(v.Index(0), text)
		full(v.Index(1), text)
	case reflect.Map:
		v.Set(reflect.ValueOf(map[string]string{text: text}))
	case reflect.String:
		v.SetString(text)
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int16, reflect.Int32, reflect.Int64:
		v.SetInt(-7)
	default:
		v.SetUint(200)
	}
}

// TestRecordsAreAsMarshalled requires that records with all members are written byte for byte as encoding/json writes them. It fails for a new member
// that the writer lacks.
func TestRecordsAreAsMarshalled(t *testing.T) {
	check := func(r maps.RecordJSON) {
		t.Helper()
		want, err := json.MarshalIndent(r, "            ", "  ")
		require.NoError(t, err)
		lines := jsonLines{depth: 6}
		lines.record(&r)
		require.Equal(t, string(SafeJSON(want)), string(lines.b))
	}
	check(maps.RecordJSON{Locations: []maps.LocationJSON{}})
	check(maps.RecordJSON{Locations: make([]maps.LocationJSON, 1), Statepoint: &maps.StatepointJSON{}, LiveOuts: []maps.LiveOut{}})
	for _, text := range []string{"rax", "", `quo"te\`, "<a>&", "\x1b[1m", "two\nlines", "c1\u009b31m", "not\xffUTF-8", "right\u202eto left", "\u2028", "ö", "\x7f"} {
		var r maps.RecordJSON
		full(reflect.ValueOf(&r).Elem(), text)
		check(r)
	}
	var most maps.RecordJSON
	most.ID, most.Locations = ^uint64(0), []maps.LocationJSON{}
	check(most)
}

// TestFunctionsAreAsMarshalled requires that functions are written byte for byte as encoding/json writes them, up to the start of their records.
func TestFunctionsAreAsMarshalled(t *testing.T) {
	check := func(f maps.FunctionJSON) {
		t.Helper()
		want, err := json.MarshalIndent(struct {
			maps.FunctionJSON
			Records []int `json:"records"`
		}{f, []int{}}, "        ", "  ")
		require.NoError(t, err)
		lines := jsonLines{depth: 4}
		lines.function(&f)
		require.Equal(t, string(SafeJSON(want)), string(lines.b)+"]\n        }")
	}
	check(maps.FunctionJSON{})
	check(maps.FunctionJSON{Prologue: &maps.PrologueJSON{Saved: []maps.SavedJSON{}}})
	for _, text := range []string{"f", "", "<a>&", "two\nlines", "not\xffUTF-8", "ö"} {
		var f maps.FunctionJSON
		full(reflect.ValueOf(&f).Elem(), text)
		check(f)
	}
}
