package replay

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/rogpeppe/go-internal/txtar"

	"example.com/reframe/deopt"
	"example.com/reframe/deopt/frame"
	"example.com/reframe/internal/llvm/ir"
	"example.com/reframe/internal/llvm/sites"
	"example.com/reframe/internal/machine/object"
	"example.com/reframe/internal/vm/described"
	"example.com/reframe/internal/vm/layout"
	"example.com/reframe/internal/vm/vmlayout"
	"example.com/reframe/ptrace"
)

// First holds the inputs of [FirstScript], which generates the first script for a core. Strings are paths.
type First struct {
	Script  string // path of the script to write; the script names other files relative to its folder
	Core    string
	Options ptrace.CoreOptions
	Modules []string // files, folders and patterns
	Layouts []string
	// Scripts is the runner for the script. Scripts.Describe reads the modules and layouts in the core, and [First.Write] runs the script once. If
	// Scripts is nil, the core's modules and layouts are not read, and the script is not run.
	Scripts *Scripts
}

// firstScript is a script that is being generated.
type firstScript struct {
	dir   string
	text  strings.Builder
	files []txtar.File
}

// FirstScript returns the text of a script that opens a core and expects the current output of reframe: the slots of the innermost frame with a
// record, and the interpreter's result, if there is one. The script passes unchanged; the user corrects expectations that are wrong.
func FirstScript(ctx context.Context, o First) (string, error) {
	dir, err := filepath.Abs(filepath.Dir(o.Script))
	if err != nil {
		return "", err
	}
	s := &firstScript{dir: dir}
	inputs, err := readInputs(o.Modules, o.Layouts)
	if err != nil {
		return "", err
	}
	t, err := ptrace.OpenCore(o.Core, o.Options)
	if err != nil {
		return "", err
	}
	defer t.Close()
	if modules, layouts := len(o.Modules) == 0, len(o.Layouts) == 0; o.Scripts != nil && o.Scripts.Describe != nil && (modules || layouts) {
		take(t, o.Scripts.Describe(layouts, modules, func(string) {}), &inputs)
	}
	v, err := deopt.Frames(t, inputs)
	if err != nil {
		return "", err
	}
	fmt.Fprintf(&s.text, "# %s\n", oneLine(fmt.Sprintf("A moment of process %d, %s.", t.PID, t.Command)))
	if err := s.open(o); err != nil {
		return "", err
	}
	stack, err := v.Pick(deopt.Choice{Frame: -1})
	if err != nil {
		s.comment("No expectations: " + v.WhyNone())
		return s.end(), nil
	}
	s.text.WriteString("frames\n")
	s.expectations(stack, v)
	s.resumption(ctx, v, stack)
	return s.end(), nil
}

// take adds the descriptions in a target to the options.
func take(t *ptrace.Target, ask described.Ask, o *deopt.Options) {
	sites.EachImage(t, func(name string, img *object.Image) {
		modules, layouts := ask(name, img)
		o.Modules, o.VMs = append(o.Modules, modules...), vmlayout.Join(o.VMs, layouts)
	})
}

// readInputs reads modules and layouts.
func readInputs(modules, layouts []string) (o deopt.Options, err error) {
	if o.Modules, _, err = ir.ReadNamed(modules); err != nil {
		return o, err
	}
	err = ReadLayouts(&o, layouts)
	return o, err
}

// ReadLayouts adds layouts to the options: JSON files, Starlark programs, and builtin layouts by name.
func ReadLayouts(o *deopt.Options, names []string) error {
	for _, name := range names {
		if vmlayout.IsLayout(name) {
			l, err := vmlayout.Read(name)
			if err != nil {
				return err
			}
			o.VMs = append(o.VMs, l)
			continue
		}
		l, err := layout.Read(name)
		if errors.Is(err, fs.ErrNotExist) && filepath.Ext(name) == "" { // the name of a builtin layout is probably misspelled
			err = fmt.Errorf("%w; the builtin layouts are %s", err, strings.Join(vmlayout.Builtin(), ", "))
		}
		if err != nil {
			return err
		}
		o.Layouts = append(o.Layouts, l)
	}
	return nil
}

// open writes the command that opens the core.
func (s *firstScript) open(o First) error {
	type flag struct{ name, path string }
	flags := []flag{{"exe", o.Options.Exe}, {"sysroot", o.Options.Sysroot}}
	for _, path := range o.Modules {
		flags = append(flags, flag{"ir", path})
	}
	for _, path := range o.Layouts {
		flags = append(flags, flag{"layout", path})
	}
	word, err := s.path(o.Core)
	if err != nil {
		return err
	}
	s.text.WriteString("core " + word)
	for _, f := range flags {
		if f.path == "" {
			continue
		}
		word, err := "", error(nil)
		if vmlayout.IsBuiltin(f.path) {
			word = f.path
		} else if f.name == "ir" || f.name == "layout" {
			word, err = s.embed(f.path)
		} else {
			word, err = s.path(f.path)
		}
		if err != nil {
			return err
		}
		fmt.Fprintf(&s.text, " --%s %s", f.name, word)
	}
	s.text.WriteByte('\n')
	return nil
}

// maxEmbedded bounds the size of a file that becomes part of the script, in bytes.
const maxEmbedded = 256 << 10

// embeddable matches the file names that need no quoting in a script.
var embeddable = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9._-]*$`)

// embed includes a small file in the script, and returns the name that the script uses for the file.
func (s *firstScript) embed(path string) (string, error) {
	info, err := os.Stat(path)
	if err != nil || !info.Mode().IsRegular() { // a pattern or a folder
		return s.path(path)
	}
	name := filepath.Base(path)
	taken := slices.ContainsFunc(s.files, func(f txtar.File) bool { return f.Name == name })
	if info.Size() > maxEmbedded || taken || !embeddable.MatchString(name) {
		return s.path(path)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return "", err
	}
	if !bytes.HasSuffix(data, []byte("\n")) || txtar.NeedsQuote(data) { // a txtar archive cannot hold it unchanged
		return s.path(path)
	}
	s.files = append(s.files, txtar.File{Name: name, Data: data})
	return name, nil
}

// path returns the path of a file relative to the script.
func (s *firstScript) path(path string) (string, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	if strings.ContainsAny(abs, "\r\n") {
		return "", fmt.Errorf("%q: a script cannot name a path with a newline", path)
	}
	rel, err := filepath.Rel(s.dir, abs)
	if err != nil { // the file is on another drive
		return Quoted(abs), nil
	}
	return "$SCRIPTDIR/" + Quoted(filepath.ToSlash(rel)), nil
}

// Quoted quotes a word for a script.
func Quoted(word string) string {
	if word != "" && !strings.ContainsAny(word, " \t\r\n'#$") {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", "''") + "'"
}

// oneLine replaces control characters, so that any text can be written into a comment.
func oneLine(text string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, text)
}

func (s *firstScript) comment(text string) {
	s.text.WriteByte('\n')
	for line := range strings.Lines(text) {
		fmt.Fprintf(&s.text, "# %s\n", oneLine(strings.TrimSuffix(line, "\n")))
	}
}

// line writes a command. If a command contains a newline, which a name may contain, line writes it as a comment.
func (s *firstScript) line(format string, args ...any) {
	line := fmt.Sprintf(format, args...)
	if oneLine(line) != line {
		line = "# " + oneLine(line)
	}
	s.text.WriteString(line + "\n")
}

// expectations writes the values of the innermost frame with a record.
func (s *firstScript) expectations(stack *deopt.Stack, v *deopt.View) {
	f := stack.Frames[0]
	s.comment(f.Title())
	fmt.Fprintf(&s.text, "frame %d", f.Index)
	if len(v.Threads) > 1 {
		fmt.Fprintf(&s.text, " -t %d", stack.Thread.ID)
	}
	fmt.Fprintf(&s.text, "\nexpect record %d\nexpect site %s\nexpect moment %s\n", f.Record.ID, f.Record.Site, f.Record.Moment)
	if f.Resume != nil {
		s.line("expect resume %s %s", Quoted(f.Resume.Function), Quoted(f.Resume.Block))
	}
	seen := map[string]bool{}
	for i := range f.Slots {
		slot := &f.Slots[i]
		name := spelled(slot)
		if seen[name] { // a gc pointer may be recorded more than once
			continue
		}
		seen[name] = true
		name = Quoted(name)
		switch {
		case slot.Status == frame.Undefined:
			s.line("expect %s undef", name)
		case slot.Status == frame.Guessed:
			s.line("expect %s guess", name)
		case slot.Status != frame.OK:
			s.line("expect %s unavailable", name)
		case slot.Value != "":
			s.line("expect %s = %s", name, Quoted(slot.Value))
		default:
			s.line("expect %s hex %s", name, slot.Hex)
		}
	}
	s.vmExpectations(f)
}

// vmExpectations writes the values of a virtual machine's frames.
func (s *firstScript) vmExpectations(f *deopt.Frame) {
	if f.VM == nil || len(f.VM.Frames) == 0 {
		return
	}
	inner := &f.VM.Frames[0]
	if inner.Reason == "" && inner.Method != "" {
		s.line("expect method %s", Quoted(inner.Method))
	}
	if inner.Reason == "" && inner.Position != nil {
		s.line("expect position %d", *inner.Position)
	}
	if inner.Reason == "" {
		for _, key := range slices.Sorted(maps.Keys(inner.Info)) {
			s.line("expect info %s %s", Quoted(key), Quoted(inner.Info[key]))
		}
	}
	for _, n := range slices.Concat(f.VM.All(), f.VM.Locks()) {
		name, v := Quoted(n.Name), n.Value
		switch {
		case v.Object != nil:
			s.line("expect %s object %d", name, *v.Object)
		case v.Status == frame.Dead:
			s.line("expect %s dead", name)
		case v.Status != frame.OK:
			s.line("expect %s unavailable", name)
		case v.Value != "" && v.Bytes != nil:
			s.line("expect %s = %s", name, Quoted(v.Value))
		case v.Hex != "":
			s.line("expect %s hex %s", name, v.Hex)
		}
	}
}

// firstRun bounds the interpreter's time for a first script. It is short, so that the script also passes on slower machines.
const firstRun = 2 * time.Second

// resumption writes the command that resumes the frame, and its expected result.
func (s *firstScript) resumption(ctx context.Context, v *deopt.View, stack *deopt.Stack) {
	ctx, cancel := context.WithTimeout(ctx, firstRun)
	defer cancel()
	out, err := v.Run(ctx, stack, deopt.Limits{})
	if err != nil {
		s.comment("The interpreter cannot run to the end from here:\n" + err.Error())
		return
	}
	s.text.WriteString("\nresume\n")
	switch {
	case out.ExitCode != nil:
		fmt.Fprintf(&s.text, "exits %d\n", *out.ExitCode)
	case out.Result != nil:
		s.line("returns %s %s", Quoted(out.Result.Type), Quoted(out.Result.Value))
	default:
		s.text.WriteString("returns nothing\n")
	}
	if line := strings.TrimSuffix(out.Output, "\n"); line != "" && oneLine(line) == line {
		s.line("prints %s", Quoted(line))
	}
}

// end returns the complete script.
func (s *firstScript) end() string {
	if len(s.files) > 0 {
		s.text.WriteByte('\n')
	}
	return string(txtar.Format(&txtar.Archive{Comment: []byte(s.text.String()), Files: s.files}))
}
