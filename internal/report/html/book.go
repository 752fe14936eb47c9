package html

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"

	"example.com/reframe/internal/base/newfile"
	"example.com/reframe/internal/check/verify"
	"example.com/reframe/internal/machine/names"
)

// Book is a directory of pages: index.html and a page for each difference that a verification found.
type Book struct {
	Pages   []Chapter
	More    int    // number of differences beyond the limit, which are not listed, or are listed without a page
	Summary string // the result of the verification; "" while it runs

	dir   string
	force bool
}

// Chapter is an entry of the index: a difference.
type Chapter struct {
	File, Title, Thread, Where string
	What                       string // the name of the first value that differs
	Left, Right                string // its values in the interpreter and in native code

	number uint64
}

// maxPages bounds the pages of a book.
const maxPages = 400

// NewBook makes the directory, if it does not exist. It returns an error that wraps [os.ErrExist] for a directory with an index, unless force is set.
// With force it removes the pages of the earlier book.
func NewBook(dir string, force bool) (*Book, error) {
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return nil, err
	}
	if err := newfile.Free(filepath.Join(dir, "index.html")); err != nil {
		if !force {
			return nil, err
		}
		if err := removePages(dir); err != nil {
			return nil, err
		}
	}
	return &Book{dir: dir, force: force}, nil
}

// pageName matches the names that [Book.Add] gives pages.
var pageName = regexp.MustCompile(`^difference-(entry-)?[0-9]+\.html$`)

// removePages removes the pages of a directory. A new index would have no links to them.
func removePages(dir string) error {
	files, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, f := range files {
		if !f.Type().IsRegular() || !pageName.MatchString(f.Name()) {
			continue
		}
		if err := os.Remove(filepath.Join(dir, f.Name())); err != nil {
			return err
		}
	}
	return nil
}

// Add writes the page of a difference. report is the text that a terminal shows for the difference.
func (b *Book) Add(v *verify.Verified, report string) error {
	if len(b.Pages) == maxPages {
		b.More++
		return nil
	}
	p, err := OfDifference(v, report)
	if err != nil {
		return err
	}
	c := Chapter{number: v.Number, File: fmt.Sprintf("difference-%d.html", v.Number), Title: p.Title, Thread: fmt.Sprintf("%d %s", v.Exit.Thread.ID, v.Exit.Thread.Name)}
	if v.Entry != "" {
		c.File = fmt.Sprintf("difference-entry-%d.html", v.Number)
	}
	if f := v.Exit.Frame; f != nil && f.Offset != nil {
		c.Where = fmt.Sprintf("%s+%#x", names.Short(f.Function), *f.Offset)
	}
	c.first(v, p.Difference)
	b.Pages = append(b.Pages, c)
	return b.write(c.File, p.Write)
}

// first sets the chapter's first value that differs, or the side that did not return.
func (c *Chapter) first(v *verify.Verified, d *Difference) {
	for _, t := range d.Tables {
		for _, r := range t.Rows {
			if !r.Same {
				c.What, c.Left, c.Right = r.What, joined(r.Left), joined(r.Right)
				return
			}
		}
	}
	c.What = "the interpreter does not return"
	if v.Native.Failed != "" {
		c.What = "native code does not return"
	}
	c.Left, c.Right = v.Interpreter.Failed, v.Native.Failed
}

func joined(list []Mark) (text string) {
	for _, m := range list {
		text += m.Text
	}
	return text
}

// Finish writes the index. It sorts the differences by their exits, because they were reported in the order in which activations returned. summary is
// the result of the verification.
func (b *Book) Finish(summary string) error {
	b.Summary = summary
	slices.SortStableFunc(b.Pages, func(a, c Chapter) int { return cmp.Compare(a.number, c.number) })
	return b.write("index.html", func(w io.Writer) error {
		return fitted(w, b, "index", func() bool {
			shown := len(b.Pages) / 2
			b.More, b.Pages = b.More+len(b.Pages)-shown, b.Pages[:shown]
			return shown > 0
		})
	})
}

// write writes a file of the book with permissions for its owner only: like a core, a page contains memory of the process.
func (b *Book) write(name string, write func(io.Writer) error) error {
	f, err := newfile.Create(filepath.Join(b.dir, name), b.force)
	if err != nil {
		return err
	}
	return f.Finish(write(f))
}
