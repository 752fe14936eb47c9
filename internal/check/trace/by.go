package trace

import (
	"cmp"
	"fmt"
	"slices"

	"example.com/reframe/deopt/frame"
	"example.com/reframe/internal/vm/condition"
)

// ByCount counts the exits at which the slots that Options.By names have the same values.
type ByCount struct {
	Values []string `json:"values"` // in the order of Options.By; "" for a slot that does not exist or is unavailable
	Count  uint64   `json:"count"`
	Other  bool     `json:"other,omitempty"` // the counter of all further values once there are maxBy counters; Values then holds only otherValues
}

// byCounts holds the counters of [Summary].By.
type byCounts map[string]*ByCount

// maxBy bounds the number of counters.
const maxBy = 10_000

// otherValues is shown for the values of further exits once there are maxBy counters. Their key is "", which is not the key of any values.
const otherValues = "others"

// countBy counts an exit by the values of names.
func (t *counts) countBy(x *Exited, names []string) {
	if len(names) == 0 {
		return
	}
	var facts []frame.Slot
	if x.Frame != nil {
		facts = x.Frame.Facts()
	}
	values := make([]string, len(names))
	for n, name := range names {
		values[n] = valueBy(facts, name)
	}
	if t.by == nil {
		t.by = byCounts{}
	}
	key := fmt.Sprintf("%q", values)
	if t.by[key] == nil {
		if len(t.by) >= maxBy {
			key, values = "", []string{otherValues}
		}
		if t.by[key] == nil {
			t.by[key] = &ByCount{Values: values, Other: key == ""}
		}
	}
	t.by[key].Count++
}

// valueBy returns the value of a slot as text. The name of a text from the layout's info may omit the prefix "info.".
func valueBy(facts []frame.Slot, name string) string {
	for _, name := range []string{name, "info." + name} {
		for n := range facts {
			if s := &facts[n]; condition.Plain(s.Name) == condition.Plain(name) && s.Status == frame.OK {
				return cmp.Or(s.Value, string(s.Hex))
			}
		}
	}
	return ""
}

func (b byCounts) sorted() (list []ByCount) {
	for _, c := range b {
		list = append(list, *c)
	}
	slices.SortFunc(list, func(a, b ByCount) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), slices.Compare(a.Values, b.Values))
	})
	return list
}
