package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"example.com/reframe/internal/report/text"
)

// helpWidth is the width of help in cells, unless the terminal is narrower.
const helpWidth = 80

// help prints the description and usage of a command. No line is wider than the terminal, or than 80 cells.
func (a *app) help(c *cobra.Command, out *os.File) {
	width := helpWidth
	if w := text.TerminalWidth(out); w > 0 {
		width = min(w, helpWidth)
	}
	var b strings.Builder
	long := c.Long
	if long == "" {
		long = c.Short
	}
	filled(&b, long, width)
	if c.Runnable() || c.HasSubCommands() {
		b.WriteString("\n")
		usageOf(&b, c, width)
	}
	_, _ = io.WriteString(out, b.String())
}

// usageOf writes the usage of a command: its arguments, examples, commands and flags.
func usageOf(b *strings.Builder, c *cobra.Command, width int) {
	write := func(line string, more int) {
		for _, part := range text.FoldLine(line, width, more) {
			b.WriteString(part + "\n")
		}
	}
	b.WriteString("Usage:\n")
	if c.Runnable() {
		write("  "+c.UseLine(), 4)
	}
	if c.HasAvailableSubCommands() {
		write("  "+c.CommandPath()+" [command]", 4)
	}
	if c.HasExample() {
		b.WriteString("\nExamples:\n")
		for line := range strings.Lines(c.Example) {
			line = strings.TrimSuffix(line, "\n")
			if text.Cells(line) > width {
				line = "  " + text.FoldCommand(text.ShellWords(strings.TrimSpace(line)), width-2)
				line = strings.ReplaceAll(line, "\n", "\n  ")
			}
			b.WriteString(line + "\n")
		}
	}
	if c.HasAvailableSubCommands() {
		b.WriteString("\nAvailable Commands:\n")
		for _, sub := range c.Commands() {
			if sub.IsAvailableCommand() || sub.Name() == "help" {
				write(fmt.Sprintf("  %-*s  %s", sub.NamePadding(), sub.Name(), sub.Short), 4)
			}
		}
	}
	if c.HasAvailableLocalFlags() {
		b.WriteString("\nFlags:\n" + strings.TrimRight(c.LocalFlags().FlagUsagesWrapped(width), " \n") + "\n")
	}
	if c.HasAvailableInheritedFlags() {
		b.WriteString("\nGlobal Flags:\n" + strings.TrimRight(c.InheritedFlags().FlagUsagesWrapped(width), " \n") + "\n")
	}
	if c.HasHelpSubCommands() {
		b.WriteString("\nAdditional help topics:\n")
	}
	for _, sub := range c.Commands() {
		if sub.IsAdditionalHelpTopicCommand() {
			write(fmt.Sprintf("  %-*s  %s", sub.CommandPathPadding(), sub.CommandPath(), sub.Short), 4)
		}
	}
	if c.HasAvailableSubCommands() {
		b.WriteString("\n")
		write(fmt.Sprintf("Use %q for more information about a command.", c.CommandPath()+" [command] --help"), 0)
	}
}

// filled writes paragraphs folded at width. An indented line starts a new line of output, except that a line which continues a label, indented as far
// as its text, is joined with it.
func filled(b *strings.Builder, long string, width int) {
	write := func(line string, more int) {
		for _, part := range text.FoldLine(line, width, more) {
			b.WriteString(part + "\n")
		}
	}
	line := ""
	for next := range strings.Lines(strings.TrimRight(long, "\n") + "\n") {
		next = strings.TrimRight(next, " \n")
		indent := len(next) - len(strings.TrimLeft(next, " "))
		switch {
		case next == "":
			if line != "" {
				write(line, 0)
			}
			b.WriteString("\n")
			line = ""
		case line == "":
			line = next
		case indent == 0 && !strings.HasPrefix(line, " "), indent > 2 && indent == text.HangingIndent(line, width, 0):
			line += " " + next[indent:]
		case indent > 0 && !strings.HasPrefix(line, " "): // a heading
			write(line, 7)
			line = next
		default:
			write(line, 0)
			line = next
		}
	}
	if line != "" {
		write(line, 0)
	}
}

// conditionsTopic returns the topic of `reframe help conditions`.
func conditionsTopic() *cobra.Command {
	return &cobra.Command{
		Use:   "conditions",
		Short: "The language of --stop-at conditions",
		Long: `A condition compares slots of the frame at the exit with numbers or with each other:

  %i > 100 && (%acc == 0x10 || %acc < %i * 2)
  loc0 & 0xff != 0 and not #1 == -1
  %flag

Name a slot as the output does, with or without %: %i, i, %"a name", loc0; #0 is the first
slot. A name with - in it needs the quotation marks. A slot called not, true or inf needs the %,
as words of the language do. Numbers are decimal, 0x, 0o, 0b or floating-point, inf and nan.

With the layout of a virtual machine, method, position and resume are those of its innermost frame,
caller[1].method that of its caller, info.line the text that the layout's info has for line, and values
have the names that the layout gives them:

  method == "Point.norm" and position == 17 and total > 9
  info.line == 40 and resume != "in-call"

A text is compared by == and !=, and equals the number that it spells. %method is a slot of a module.
A condition that no exit can fulfil, such as position == 3 and position == 4, is an error at the start.

The language is Starlark's (https://github.com/bazelbuild/starlark), without calls and
lists. C's && || ! are accepted as well. Operators, from the highest precedence to the lowest:

  - ~ !                 minus; complement of the bits; not
  * / // %              // divides and rounds down
  + -
  << >>                 << by up to 511 bits
  &
  ^
  |
  == != < <= > >=
  not
  && and
  || or

So & ^ | bind tighter than comparisons, as in Python and unlike C.

Integers have any size and never overflow: %i + 1 of the largest i64 is 2^63, and
& 0xffffffff keeps the low 32 bits. A slot of type iN is signed; a pointer, and a slot without a
type, is unsigned. / gives a floating-point number: 7 / 2 is 3.5. // rounds down, and % has the
sign of the divisor: -7 // 2 is -4, and -7 % 2 is 1. C gives -3 and -1. >> keeps the sign.
A slot also equals (==) a number in the text with the same bits: an i8 of 0x80 equals -128 and
128. Two slots of the same width are equal if their bits are. A float has the value that
the output shows; an integer together with a float becomes a float. NaN equals nothing.
A number is true if it is not 0; true is 1, and false is 0.

An expression with an unavailable value is neither true nor false, and such an exit does
not match. But true || it is true, and false && it is false. The summary counts these exits.
A name that no site of the modules and layouts has is an error at the start.`,
	}
}

// manCommand returns the command that writes manual pages, for packagers.
func manCommand() *cobra.Command {
	return &cobra.Command{
		Use:    "man DIR",
		Short:  "Write a manual page for each command into a directory",
		Hidden: true,
		Args:   needs("a directory"),
		RunE: func(c *cobra.Command, args []string) error {
			if err := os.MkdirAll(args[0], 0o755); err != nil {
				return err
			}
			pages := append([]*cobra.Command{c.Root()}, c.Root().Commands()...)
			pages = slices.DeleteFunc(pages, func(c *cobra.Command) bool { return c.Hidden || c.Name() == "help" })
			for _, page := range pages {
				page.InitDefaultHelpFlag() // cobra adds this flag to other commands when they run
				name := filepath.Join(args[0], manualName(page)+".1")
				if err := os.WriteFile(name, manualPage(page, pages), 0o644); err != nil {
					return err
				}
			}
			return nil
		},
	}
}
