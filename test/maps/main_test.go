package maps_test

import (
	"os"
	"testing"

	"reframe/internal/clitest"
)

func TestMain(m *testing.M) { os.Exit(clitest.Main(m)) }
