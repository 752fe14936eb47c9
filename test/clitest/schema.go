package clitest

import (
	"bytes"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/require"
)

// RequireValid validates JSON against two schemas: that of doc, with unknown members forbidden, and that of the last release.
func RequireValid(t *testing.T, schema, text string) {
	t.Helper()
	v, err := jsonschema.UnmarshalJSON(strings.NewReader(text))
	require.NoError(t, err, text)
	require.NoError(t, SchemaOf(t, schema).Validate(v), text)
	published, err := SchemaIn(filepath.Join("../../test/clitest/testdata/published", schema), OpenSchema)
	require.NoError(t, err)
	require.NoError(t, published.Validate(asPublished(v)), "what was published refuses: %s", text)
}

// asPublished replaces the target kind machine by core. The kind machine was added after the last release, and is written only with flags that the
// last release lacks.
func asPublished(v any) any {
	report, ok := v.(map[string]any)
	if !ok {
		return v
	}
	target, ok := report["target"].(map[string]any)
	if !ok || target["kind"] != "machine" {
		return v
	}
	report, target = maps.Clone(report), maps.Clone(target)
	target["kind"], target["core"] = "core", target["debugger"]
	delete(target, "debugger")
	report["target"] = target
	return report
}

// SchemaOf returns a schema of doc that forbids unknown members.
func SchemaOf(t *testing.T, name string) *jsonschema.Schema {
	t.Helper()
	s, err := SchemaIn("../../doc/user/schema/"+name, ClosedSchema)
	require.NoError(t, err)
	return s
}

// Schemas caches the schemas that were requested.
var Schemas sync.Map

// SchemaIn returns the schema in a file. read reads the file.
func SchemaIn(path string, read func(path string) (any, error)) (*jsonschema.Schema, error) {
	once, _ := Schemas.LoadOrStore(path, sync.OnceValues(func() (*jsonschema.Schema, error) {
		schema, err := read(path)
		if err != nil {
			return nil, err
		}
		c := jsonschema.NewCompiler()
		if err := c.AddResource(filepath.Base(path), schema); err != nil {
			return nil, err
		}
		return c.Compile(filepath.Base(path))
	}))
	return once.(func() (*jsonschema.Schema, error))()
}

// OpenSchema reads a schema.
func OpenSchema(path string) (any, error) {
	file, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	return jsonschema.UnmarshalJSON(bytes.NewReader(file))
}

// ClosedSchema reads a schema and changes it to forbid members that it does not name. Readers must accept such members, but the program must not
// write them.
func ClosedSchema(path string) (any, error) {
	schema, err := OpenSchema(path)
	for _, o := range ObjectsOf(schema, nil) {
		if properties, ok := o["properties"].(map[string]any); ok && len(properties) > 0 && o["additionalProperties"] == nil && o["type"] == "object" {
			o["additionalProperties"] = false
		}
	}
	return schema, err
}

// ObjectsOf appends the objects in a JSON value to found.
func ObjectsOf(v any, found []map[string]any) []map[string]any {
	switch v := v.(type) {
	case map[string]any:
		found = append(found, v)
		for _, member := range v {
			found = ObjectsOf(member, found)
		}
	case []any:
		for _, member := range v {
			found = ObjectsOf(member, found)
		}
	}
	return found
}
