package trace

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"example.com/reframe/deopt"
	"example.com/reframe/internal/llvm/ir"
	"example.com/reframe/internal/llvm/sites"
	"example.com/reframe/internal/machine/names"
	"example.com/reframe/internal/vm/condition"
)

// maxSurveyed bounds the size in bytes of a module whose sites are all searched for names. That takes a second.
const maxSurveyed = 32 << 20

// unnamed matches the slots of a record that no module names.
var unnamed = regexp.MustCompile(`^loc[0-9]+$`)

// Undescribed holds the parts that are unknown until the target describes itself ([Options].Describe): its modules, and the layout of its virtual
// machine.
type Undescribed struct{ Modules, Layouts bool }

// CheckStop returns an error if a condition cannot hold at any exit that the filter selects: no site of the modules and no exit of the layouts has
// the slots that it uses. The error is a [*condition.Error]. Facts that are unknown without the process cause no error.
func CheckStop(o *deopt.Options, c *condition.Condition, filter *ExitFilter, yet Undescribed) error {
	var siteList [][]string // the names of each site
	for _, m := range o.Modules {
		if m.Size() > maxSurveyed {
			return nil
		}
		for _, f := range m.Funcs {
			list, err := sites.CompiledSites(f)
			if err != nil {
				return nil // ignore the error: it is reported when the function is needed
			}
			for _, s := range list {
				if filter.wantsSite(string(s.Kind)) && slices.ContainsFunc(s.IDs(), filter.wantsRecord) {
					siteList = append(siteList, siteNames(s))
				}
			}
		}
	}
	for _, l := range o.Layouts {
		for _, x := range l.Exits {
			if x.Record != nil && !filter.wantsRecord(*x.Record) {
				continue
			}
			var names []string
			for _, s := range x.Slots {
				names = append(names, s.Name)
			}
			siteList = append(siteList, names)
		}
	}
	open := func(n condition.Name) bool {
		if strings.Contains(n.Text, "[") || n.Fact() { // the layout determines the slots of a record only at run time
			return yet.Layouts || len(o.VMs) > 0
		}
		return n.Text == "" || yet.Modules || unnamed.MatchString(n.Text)
	}
	siteList = append(siteList, nil) // a site that no module describes
	all := map[string]string{}       // all names, as they are printed
	for _, names := range siteList {
		has := map[string]bool{}
		for _, name := range names {
			has[condition.Plain(name)] = true
			all[condition.Plain(name)] = name
		}
		if c.Possible(func(n condition.Name) bool { return open(n) || has[n.Text] }) {
			return nil
		}
	}
	for _, n := range c.Names() {
		if _, exists := all[n.Text]; !exists && !open(n) {
			return c.Wrong(n, noSuchSlot(n.Text, all, len(o.Modules)+len(o.Layouts) > 0))
		}
	}
	return &condition.Error{Text: c.Text, Why: "it is true at no site: no site has all the slots that it names"}
}

// siteNames lists the names of a site's slots.
func siteNames(s *ir.Site) (names []string) {
	for _, v := range slices.Concat(s.Live, s.GCLive) {
		if called := sites.NameOf(v); called != "" {
			names = append(names, called)
		}
	}
	return names
}

// shownNames bounds the names that are proposed.
const shownNames = 8

// noSuchSlot reports that no site has a slot, and lists the existing ones, the nearest first.
func noSuchSlot(want string, all map[string]string, given bool) string {
	if !given {
		return "names of slots come from a module (--ir) or a layout (--layout); without them the slots are loc0, loc1 and so on"
	}
	if len(all) == 0 {
		return "no selected site has a slot with a name"
	}
	plain := names.ByDistance(want, slices.Collect(maps.Keys(all)))
	var shown []string
	for _, n := range plain[:min(len(plain), shownNames)] {
		shown = append(shown, all[n])
	}
	text := "no selected site has a slot of that name; the names are " + strings.Join(shown, ", ")
	if more := len(plain) - len(shown); more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}
