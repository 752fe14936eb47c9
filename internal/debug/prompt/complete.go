package prompt

import (
	"slices"
	"strings"

	"example.com/reframe/internal/check/trace"
	"example.com/reframe/internal/llvm/ir"
)

// Complete lists completions for the last word of a line: names of commands, functions, blocks and values. begin is the offset of that word.
func (p *Prompt) Complete(line string) (begin int, offers []string) {
	begin = strings.LastIndexAny(line, " \t(") + 1
	typed := strings.Fields(line[:begin])
	var all []string
	if len(typed) == 0 {
		all = completeCommands(p, nil)
	} else if c, err := find(cut(typed[0])); err == nil && c.complete != nil {
		all = c.complete(p, typed[1:])
	}
	for _, name := range all {
		if strings.HasPrefix(name, line[begin:]) && !slices.Contains(offers, name) {
			offers = append(offers, name)
		}
	}
	return begin, offers
}

// cut returns the first word of a command without a format, such as /x.
func cut(word string) string {
	word, _, _ = strings.Cut(word, "/")
	return word
}

// completeSlots lists the values of the frame.
func (p *Prompt) completeSlots(typed []string) (names []string) {
	list, err := p.Session.Slots()
	if err != nil {
		return nil
	}
	for _, s := range list {
		if s.Name != "" {
			names = append(names, s.Name)
		}
	}
	return names
}

// completeBlocks lists the blocks of the function in which the interpreter is stopped or would start.
func (p *Prompt) completeBlocks([]string) (names []string) {
	at, err := p.Session.Level()
	if err != nil {
		return nil
	}
	var f *ir.Func
	switch {
	case at.Run != nil:
		f = at.Run.Func
	case at.Physical != nil:
		f = at.Physical.To()
	}
	if f == nil {
		return nil
	}
	blocks, err := f.Body()
	if err != nil {
		return nil
	}
	for _, b := range blocks {
		names = append(names, b.Ref())
	}
	return names
}

// completeFunctions lists the functions that have exits.
func (p *Prompt) completeFunctions([]string) (names []string) {
	list, err := p.Session.Exits()
	if err != nil {
		return nil
	}
	for _, planned := range list {
		for _, x := range planned.Exits {
			names = append(names, x.Function)
		}
	}
	return names
}

// completeBreak lists the arguments of break: kinds and functions, and values after if.
func (p *Prompt) completeBreak(typed []string) []string {
	if slices.Contains(typed, "if") {
		return p.completeSlots(nil)
	}
	return slices.Concat([]string{"if", "at", "function", "record"}, trace.SiteKinds, p.completeFunctions(nil))
}
