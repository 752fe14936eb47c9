package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"reframe/deopt"
	"reframe/deopt/frame"
	"reframe/ptrace"
)

func (a *app) mapsCommand() *cobra.Command {
	pid := 0
	c := &cobra.Command{
		Use:   "maps FILE | -p PID",
		Short: "Print the stack map records of a file or a process",
		Long: `maps prints every stack map record of an ELF file (executable, shared object or
unlinked object), or of a process: its modules, the objects that its JIT registered,
and, where nothing is registered, what looks like a stack map in its memory. The
process is read while it runs.`,
		Example: `  reframe maps loop.o
  reframe maps -p 41822
  reframe maps loop.o --json`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			var maps *deopt.Maps
			var err error
			switch byPID := c.Flags().Changed("pid"); {
			case byPID == (len(args) == 1):
				return usage("maps takes one of FILE and -p PID")
			case byPID && pid <= 0:
				return usage("-p %d: a process number is above 0", pid)
			case byPID:
				var t *ptrace.Target
				if t, err = ptrace.Survey(pid); err == nil {
					defer t.Close()
					maps, err = deopt.TargetMaps(t)
				}
			default:
				maps, err = deopt.FileMaps(args[0])
			}
			if err != nil {
				return err
			}
			if a.json {
				return writeJSON(a.stdout, maps)
			}
			return a.printMaps(maps)
		},
	}
	c.Flags().IntVarP(&pid, "pid", "p", 0, "the process to look at")
	c.Flags().BoolVar(&a.json, "json", false, "print one JSON object (schema "+deopt.MapsSchema+")")
	_ = c.RegisterFlagCompletionFunc("pid", completePID)
	return c
}

func (a *app) printMaps(m *deopt.Maps) error {
	s := a.style()
	var out strings.Builder
	for _, image := range m.Images {
		fmt.Fprintln(&out, s.bold(printable(image.Name)))
		if image.Error != "" {
			fmt.Fprintf(&out, "  %s\n", s.yellow(printable(image.Error)))
		}
		for n, head := range image.Maps {
			fmt.Fprintf(&out, "  map %d: version %d, %s, %s, %s\n", n, head.Version,
				count(head.Functions, "function"), count(head.Constants, "large constant"), count(head.Records, "record"))
		}
		for i := range image.Functions {
			printFunction(&out, s, &image.Functions[i])
		}
	}
	_, err := io.WriteString(a.stdout, out.String())
	return err
}

func printFunction(out *strings.Builder, s style, f *deopt.Function) {
	name := printable(f.Name)
	if name == "" {
		name = "(no symbol)"
	}
	size := "dynamic"
	if f.StackSize != nil {
		size = fmt.Sprintf("%d bytes", *f.StackSize)
	}
	at := "unlinked"
	if f.Address != "" {
		at = "at " + string(f.Address)
	}
	fmt.Fprintf(out, "\n  %s %s, stack %s\n", s.bold(name), at, size)
	for i := range f.Records {
		r := &f.Records[i]
		fmt.Fprintf(out, "    record %d at +%#x, %s\n", r.ID, r.Offset, count(len(r.Locations), "location"))
		for k := range r.Locations {
			l := &r.Locations[k]
			fmt.Fprintf(out, "      #%-3d %-13s %-20s %s\n", k, l.Kind, mapLocation(l), count(l.Size, "byte"))
		}
		if len(r.LiveOuts) > 0 {
			names := make([]string, len(r.LiveOuts))
			for k, l := range r.LiveOuts {
				names[k] = fmt.Sprintf("%s:%d", l.Register, l.Size)
			}
			fmt.Fprintf(out, "      live-outs %s\n", strings.Join(names, " "))
		}
	}
}

func mapLocation(l *frame.Location) string {
	if l.Constant != "" {
		return l.Constant
	}
	return bracket(l)
}
