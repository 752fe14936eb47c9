// Command prose checks and samples the English of the repository: comments, texts of the program, and documents.
//
// Its main type is [text]. It reads only files of this repository.
package main

import (
	"fmt"
	"os"
	"strconv"
)

const usage = `usage:
  prose check [FILE...]     report words and patterns that CONTRIBUTING.md rules out; without files, in the whole repository
  prose sample SEED         print 120 comments and 60 texts of the program, drawn at random
  prose same-tree COMMIT    check that the Go files that changed since COMMIT differ only in comments`

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "prose:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	switch {
	case len(args) >= 1 && args[0] == "check":
		return check(args[1:])
	case len(args) == 2 && args[0] == "sample":
		seed, err := strconv.ParseUint(args[1], 10, 64)
		if err != nil {
			return fmt.Errorf("the seed must be a number: %w", err)
		}
		return sample(seed)
	case len(args) == 2 && args[0] == "same-tree":
		return sameTree(args[1])
	}
	return fmt.Errorf("%s", usage)
}
