package main

import (
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
)

// pattern is a regular expression for words that make a sentence hard to read.
type pattern struct {
	matches *regexp.Regexp
	say     string // the suggested replacement
	only    kind
}

// kind selects the texts that a pattern applies to.
type kind int

const (
	anywhere kind = iota
	inComments
)

// patterns are the rules of CONTRIBUTING.md that a program can check.
var patterns = []pattern{
	{regexp.MustCompile(`^(?:[A-Z]\w*|[a-z]\w*[A-Z]\w*) (?:is|are) (?:what|that|who|where|why|how|whether|those|the one)\b`), "a noun or a verb: X returns, X holds, X reports whether", inComments},
	{regexp.MustCompile(`(?i)\b(?:nobody|whoever|thereof|wherefrom|therein|whereof)\b`), "the subject", anywhere},
	{regexp.MustCompile(`(?i)\bit is (?:said|told)\b`), "who reports it", anywhere},
	{regexp.MustCompile(`(?i)\bstands (?:at|on|where|before|behind)\b`), "stopped at", anywhere},
	{regexp.MustCompile(`(?i)\bheld against\b|\bholds? \w+ against\b`), "compared with", anywhere},
	{regexp.MustCompile(`(?i)\bwhat there is of\b|\bis none yet\b`), "what it is, not found", anywhere},
	{regexp.MustCompile(`(?i)\bso many\b`), "the number", anywhere},
	{regexp.MustCompile(`(?i)\b(?:teh|recieve|occured|seperate|adress|lenght|wich|becuase|existance|neccessary|succesful|refered)\b`), "the right spelling", anywhere},
}

// userNobody matches the Unix account, which is allowed.
var userNobody = regexp.MustCompile("(?i)user `?nobody`?")

// check reports the texts that match a pattern.
func check(names []string) error {
	if len(names) == 0 {
		var err error
		if names, err = files(".go", ".md"); err != nil {
			return err
		}
	}
	found := 0
	for _, name := range names {
		if filepath.Dir(name) == "scripts/prose" { // these files contain the patterns
			continue
		}
		texts, err := textsOf(name)
		if err != nil {
			return err
		}
		for _, t := range texts {
			// Skip names, and messages of tests, which quote the texts that they test.
			if !t.comment && (strings.HasSuffix(name, "_test.go") || !strings.Contains(t.words, " ")) {
				continue
			}
			for _, p := range patterns {
				if p.only == inComments && !t.comment {
					continue
				}
				if m := p.matches.FindString(userNobody.ReplaceAllString(t.words, "user")); m != "" {
					found++
					fmt.Printf("%s:%d: %q: write %s\n", t.file, t.line, m, p.say)
				}
			}
		}
	}
	if found > 0 {
		return errors.New(fmt.Sprint(found, " texts to reword"))
	}
	return nil
}
