package stress

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
)

// Exit identifies an exit of a run by the number of the exit in its thread and the number of the thread; both count from 1. Threads may run in
// another order in another run, but each thread reaches its own exits in the same order.
//
// Exits inside the activation of a chosen exit are not counted, because the interpreter runs that code instead.
type Exit struct {
	Thread int
	Number uint64
}

// String returns the text of an exit: "17" in the first thread, and "2:17" in the second.
func (e Exit) String() string {
	if e.Thread == 1 {
		return strconv.FormatUint(e.Number, 10)
	}
	return fmt.Sprintf("%d:%d", e.Thread, e.Number)
}

// MarshalText implements [encoding.TextMarshaler].
func (e Exit) MarshalText() ([]byte, error) { return []byte(e.String()), nil }

// ParseExit parses the text of [Exit.String].
func ParseExit(text string) (Exit, error) {
	e := Exit{Thread: 1}
	thread, number, two := strings.Cut(text, ":")
	if !two {
		number = thread
	}
	var err error
	if two {
		e.Thread, err = strconv.Atoi(thread)
	}
	if err == nil {
		e.Number, err = strconv.ParseUint(number, 10, 64)
	}
	if err != nil || e.Thread < 1 || e.Number < 1 {
		return e, fmt.Errorf("%q: expected the number of an exit, such as 17, or 2:17 for exit 17 of the second thread", text)
	}
	return e, nil
}

// ParseProbability parses a fraction: 0.01, or 1%.
func ParseProbability(text string) (float64, error) {
	number, percent := strings.CutSuffix(text, "%")
	p, err := strconv.ParseFloat(number, 64)
	if percent {
		p /= 100
	}
	if err != nil || !(p > 0 && p <= 1) {
		return 0, fmt.Errorf("%q: expected a share of all exits above 0 and up to 1, such as 0.01 or 1%%", text)
	}
	return p, nil
}

// chooses reports whether an exit is deoptimized, which depends only on the seed and the exit.
func (o *Options) chooses(e Exit) bool {
	if len(o.Only) > 0 {
		return slices.Contains(o.Only, e)
	}
	const bits = 53 // of a float64's fraction
	at := rand.NewPCG(o.Seed, uint64(e.Thread)<<48^e.Number).Uint64() >> (64 - bits)
	return float64(at)/(1<<bits) < o.Probability
}
