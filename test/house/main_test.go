package house

import (
	"os"
	"testing"
)

// TestMain runs the tests in the root folder of the module, whose files and packages they read.
func TestMain(m *testing.M) {
	if err := os.Chdir("../.."); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}
