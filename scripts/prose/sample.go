package main

import (
	"fmt"
	"math/rand/v2"
	"strings"
)

// comments and messages are the numbers of texts in a sample.
const comments, messages = 120, 60

// sample prints comments of all Go files, and errors and help of the program, drawn at random.
func sample(seed uint64) error {
	names, err := files(".go")
	if err != nil {
		return err
	}
	var said, printed []text
	for _, name := range names {
		texts, err := textsOf(name)
		if err != nil {
			return err
		}
		for _, t := range texts {
			switch {
			case t.comment && strings.Contains(t.words, " "):
				said = append(said, t)
			case !t.comment && isMessage(t):
				printed = append(printed, t)
			}
		}
	}
	r := rand.New(rand.NewPCG(seed, 0))
	draw := func(title string, from []text, n int) {
		fmt.Printf("# %s: %d of %d\n\n", title, min(n, len(from)), len(from))
		for i, k := range r.Perm(len(from))[:min(n, len(from))] {
			t := from[k]
			fmt.Printf("%d. %s:%d\n   %s\n", i+1, t.file, t.line, strings.ReplaceAll(strings.TrimSpace(t.words), "\n", "\n   "))
		}
		fmt.Println()
	}
	draw("comments", said, comments)
	draw("errors and help", printed, messages)
	return nil
}

// isMessage reports whether a string of the product is a sentence or phrase, which means four words or more. Strings of tests are excluded, because
// users do not see them.
func isMessage(t text) bool {
	if strings.HasSuffix(t.file, "_test.go") || strings.HasPrefix(t.file, "test/") || strings.HasPrefix(t.file, "bench/") || strings.HasPrefix(t.file, "scripts/") {
		return false
	}
	return len(strings.Fields(t.words)) >= 4
}
