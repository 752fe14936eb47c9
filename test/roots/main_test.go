package roots_test

import (
	"os"
	"testing"

	"example.com/reframe/test/clitest"
)

func TestMain(m *testing.M) { os.Exit(clitest.Main(m)) }
