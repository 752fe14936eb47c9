package main

import (
	"bytes"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// manualName returns the name of a command's page, without its section.
func manualName(c *cobra.Command) string { return strings.ReplaceAll(c.CommandPath(), " ", "-") }

// date returns the date of a page. It does not use the current date, so that the same source gives the same bytes. A build sets SOURCE_DATE_EPOCH
// (reproducible-builds.org).
func date() string {
	seconds, err := strconv.ParseInt(os.Getenv("SOURCE_DATE_EPOCH"), 10, 64)
	if err != nil {
		return ""
	}
	return time.Unix(seconds, 0).UTC().Format(time.DateOnly)
}

// manualPage returns the manual page of a command. The page of the root command lists the pages of the other commands.
func manualPage(c *cobra.Command, pages []*cobra.Command) []byte {
	p := &roff{}
	p.line(".TH %s 1 %q reframe", strings.ToUpper(manualName(c)), date())
	p.line(".SH NAME")
	p.line(`%s \- %s`, escaped(manualName(c)), escaped(c.Short))
	p.line(".SH SYNOPSIS")
	p.line(`.B %s`, escaped(c.CommandPath()))
	p.words(strings.TrimPrefix(c.UseLine(), c.CommandPath()))
	description, status := c.Long, ""
	if before, after, found := strings.Cut(description, "\nExit status: "); found {
		status, description, _ = strings.Cut(after, "\n\n")
		description = before + "\n" + description
	}
	p.line(".SH DESCRIPTION")
	p.text(description)
	if c.HasParent() {
		p.flags("OPTIONS", c.NonInheritedFlags())
		p.flags("OPTIONS OF ALL COMMANDS", c.InheritedFlags())
	} else {
		p.line(".SH COMMANDS")
		for _, page := range pages[1:] {
			p.line(".TP")
			p.line(".BR %s (1)", escaped(manualName(page)))
			p.words(page.Short + ".")
		}
		p.flags("OPTIONS", c.LocalFlags())
	}
	if status != "" {
		p.line(".SH EXIT STATUS")
		p.text(status)
	}
	if c.Example != "" {
		p.line(".SH EXAMPLES")
		p.text(c.Example)
	}
	p.line(".SH SEE ALSO")
	if c.HasParent() {
		p.line(".BR %s (1)", escaped(manualName(c.Root())))
	} else {
		p.line(".BR gdb (1),")
		p.line(".BR core (5)")
	}
	return p.out.Bytes()
}

// roff is the source of a manual page that is being written.
type roff struct{ out bytes.Buffer }

func (p *roff) line(format string, args ...any) { fmt.Fprintf(&p.out, format+"\n", args...) }

// width bounds a line of the source of a page.
const width = 76

// words writes a filled paragraph.
func (p *roff) words(text string) {
	line := ""
	for _, word := range strings.Fields(text) {
		if line != "" && len(escaped(line))+1+len(escaped(word)) > width {
			p.line("%s", escaped(line))
			line = ""
		}
		line = strings.TrimPrefix(line+" "+word, " ")
	}
	if line != "" {
		p.line("%s", escaped(line))
	}
}

// text writes paragraphs of help: filled, except for indented lines.
func (p *roff) text(text string) {
	for n, paragraph := range strings.Split(strings.Trim(text, "\n"), "\n\n") {
		lines := strings.Split(strings.Trim(paragraph, "\n"), "\n")
		for k := 0; k < len(lines); {
			setIn := strings.HasPrefix(lines[k], "  ")
			end := k
			for end < len(lines) && strings.HasPrefix(lines[end], "  ") == setIn {
				end++
			}
			switch {
			case setIn:
				if n+k > 0 {
					p.line(".PP")
				}
				p.line(".RS 2\n.nf")
				for _, line := range lines[k:end] {
					p.line("%s", escaped(strings.TrimPrefix(line, "  ")))
				}
				p.line(".fi\n.RE")
			default:
				if n+k > 0 {
					p.line(".PP")
				}
				p.words(strings.Join(lines[k:end], " "))
			}
			k = end
		}
	}
}

// flags writes a section of flags.
func (p *roff) flags(title string, flags *pflag.FlagSet) {
	if !flags.HasAvailableFlags() {
		return
	}
	p.line(".SH %s", title)
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Hidden {
			return
		}
		p.line(".TP")
		name, usage := pflag.UnquoteUsage(f)
		spelled := `\fB` + escaped("--"+f.Name) + `\fR`
		if f.Shorthand != "" {
			spelled = `\fB` + escaped("-"+f.Shorthand) + `\fR, ` + spelled
		}
		if name != "" {
			spelled += ` \fI` + escaped(name) + `\fR`
		}
		p.line("%s", spelled)
		if !slices.Contains([]string{"", "0", "0s", "false", "[]"}, f.DefValue) && !strings.Contains(usage, "(default") {
			usage += fmt.Sprintf(" (default %s)", f.DefValue)
		}
		p.words(usage)
	})
}

// escaped escapes text so that roff takes no part of it as a request or an escape sequence.
func escaped(text string) string {
	text = strings.NewReplacer(`\`, `\e`, "-", `\-`, "^", `\(ha`, "~", `\(ti`, "`", `\(ga`).Replace(text)
	if strings.HasPrefix(text, ".") || strings.HasPrefix(text, "'") {
		text = `\&` + text
	}
	return text
}
