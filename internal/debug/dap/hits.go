package dap

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"example.com/reframe/deopt/frame"
	"example.com/reframe/internal/vm/condition"
)

// breakpoint is a breakpoint of any kind that a client has set.
type breakpoint struct {
	id     int
	reason string // the reason of its stops: "breakpoint", "function breakpoint", "exception", "data breakpoint"
	filter string // the filter of an exception breakpoint
	number int    // the number of the session's breakpoint; 0 if it does not stop native code
	when   *condition.Condition
	hit    func(uint64) bool // reports whether the breakpoint stops at the hit with a number; nil: it stops at each hit
	log    *message          // a hit prints this message and does not stop; nil for none
	count  uint64            // number of hits at which the condition held
}

// read parses a breakpoint's condition, hit condition and log message.
func (b *breakpoint) read(when, hit, log string) (err error) {
	if when != "" {
		if b.when, err = condition.Parse(when); err != nil {
			return err
		}
	}
	if b.hit, err = parseHits(hit); err != nil {
		return err
	}
	if log != "" {
		b.log, err = parseMessage(log)
	}
	return err
}

// stops counts a hit at which the condition held, and reports whether it stops the target.
func (b *breakpoint) stops(w *writer, slots []frame.Slot) bool {
	b.count++
	if b.hit != nil && !b.hit(b.count) {
		return false
	}
	if b.log != nil {
		w.log(b.log.of(slots))
		return false
	}
	return true
}

var hits = regexp.MustCompile(`^\s*(==|>=|>|%)?\s*([0-9]{1,18})\s*$`)

// parseHits parses a hit condition: 5 or == 5, >= 5, > 5, or % 5 for each fifth hit.
func parseHits(text string) (func(uint64) bool, error) {
	if strings.TrimSpace(text) == "" {
		return nil, nil
	}
	m := hits.FindStringSubmatch(text)
	if m == nil {
		return nil, fmt.Errorf("hit count %q: expected N, == N, >= N, > N, or %% N for each N-th hit", text)
	}
	n, _ := strconv.ParseUint(m[2], 10, 64) // the pattern allows at most 18 digits, which always fit
	switch {
	case m[1] == ">=":
		return func(k uint64) bool { return k >= n }, nil
	case m[1] == ">":
		return func(k uint64) bool { return k > n }, nil
	case n == 0:
		return nil, fmt.Errorf("hit count %q: must be above 0", text)
	case m[1] == "%":
		return func(k uint64) bool { return k%n == 0 }, nil
	}
	return func(k uint64) bool { return k == n }, nil
}

// message is a log message with expressions in it: "i is {%i}".
type message struct {
	texts  []string // the texts around the expressions: one element more than values has
	values []*condition.Expression
}

func parseMessage(text string) (*message, error) {
	m := &message{}
	for {
		before, rest, found := strings.Cut(text, "{")
		m.texts = append(m.texts, before)
		if !found {
			return m, nil
		}
		inside, after, closed := strings.Cut(rest, "}")
		if !closed {
			return nil, fmt.Errorf("log message %q: { without }", text)
		}
		e, err := condition.ParseExpression(inside)
		if err != nil {
			return nil, err
		}
		m.values, text = append(m.values, e), after
	}
}

// of returns the message with the values of its expressions.
func (m *message) of(slots []frame.Slot) string {
	var b strings.Builder
	for n, e := range m.values {
		b.WriteString(m.texts[n])
		b.WriteString(valueOf(e, slots))
	}
	b.WriteString(m.texts[len(m.values)])
	return b.String()
}

// valueOf returns the value of an expression, or the reason why it has none.
func valueOf(e *condition.Expression, slots []frame.Slot) string {
	if name, only := e.Slot(); only {
		if is := name.Find(slots); is != nil {
			return spelled(is, false)
		}
	}
	text, _, err := e.Value(slots)
	if err != nil {
		return "{" + err.Error() + "}"
	}
	return text
}
