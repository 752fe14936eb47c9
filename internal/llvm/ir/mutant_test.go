package ir

import (
	"math/rand"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/test/livetest"
)

// TestTakesTheMutantsThatLLVMAsTakes deletes, repeats or replaces one token of a valid module. It requires that a mutant that llvm-as accepts is accepted
// here. The converse does not hold: metadata and the contents of attributes are not checked.
func TestTakesTheMutantsThatLLVMAsTakes(t *testing.T) {
	livetest.Slow(t)
	const version, mutants = 22, 200
	src, err := os.ReadFile(filepath.Join("testdata", "common.ll"))
	require.NoError(t, err)
	tokens := regexp.MustCompile(`[-\w.%@$#"!]+|\s+|.`).FindAllString(string(src), -1)
	random := rand.New(rand.NewSource(22))
	taken := 0
	for range mutants {
		mutant := append([]string(nil), tokens...)
		at := random.Intn(len(mutant))
		for strings.TrimSpace(mutant[at]) == "" {
			at = random.Intn(len(mutant))
		}
		other := tokens[random.Intn(len(tokens))]
		mutant[at] = []string{"", other, mutant[at] + " " + other, tokens[max(0, at-2)]}[random.Intn(4)]
		text := strings.Join(mutant, "")
		m, err := Parse("mutant.ll", []byte(text))
		if err == nil {
			err = m.Check()
		}
		// The verifier's rules, such as dominance, are not checked by this parser.
		_, errs, ok := llvm(t, version, "llvm-as", "-disable-verify", "-o", os.DevNull, write(t, "mutant.ll", text))
		if ok {
			taken++
			require.NoError(t, err)
		} else if err == nil {
			require.NotContains(t, errs, "use of undefined value", "llvm-as refuses it")
		}
	}
	require.Greater(t, taken, 5)
}
