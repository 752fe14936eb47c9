package replay

import (
	"bufio"
	"bytes"
	"encoding/xml"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"

	"example.com/reframe/internal/base/newfile"
)

// JUnit writes results as JUnit XML, in the subset that Jenkins, GitLab and others read: one testsuite of testcases, each with failure or skipped,
// and system-out. The file appears under its name when it is complete.
type JUnit struct {
	file *newfile.File
	out  *bufio.Writer

	began                    time.Time
	tests, failures, skipped int
}

// junitHead is the maximum size of the head in bytes. The head contains the counts, so it is written last, over blanks that were reserved for it.
const junitHead = 256

// CreateJUnit creates a report at path. It replaces an existing report. If another file with content exists, the error wraps [os.ErrExist], unless
// replace is set.
func CreateJUnit(path string, replace bool) (*JUnit, error) {
	f, err := newfile.Create(path, replace || IsJUnit(path))
	if err != nil {
		return nil, err
	}
	j := &JUnit{file: f, out: bufio.NewWriter(f), began: time.Now()}
	_, err = j.out.WriteString(strings.Repeat(" ", junitHead))
	return j, err
}

// IsJUnit reports whether a file looks like a JUnit report.
func IsJUnit(path string) bool {
	if newfile.Free(path) == nil { // the file is missing, empty or not regular: opening a pipe would wait for its writer
		return false
	}
	f, err := os.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	var start [4096]byte
	n, _ := io.ReadFull(f, start[:])
	head := bytes.TrimSpace(start[:n])
	return bytes.HasPrefix(head, []byte("<")) && bytes.Contains(head, []byte("<testsuite"))
}

// Add writes a result.
func (j *JUnit) Add(r *Result) error {
	j.tests++
	name := filepath.ToSlash(r.Path)
	class := strings.Trim(strings.ReplaceAll(path.Dir(name), "/", "."), ".")
	if class == "" {
		class = string(r.Kind) + "s"
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, `<testcase name="%s" classname="%s" file="%s" time="%.3f">`, escaped(path.Base(name)), escaped(class), escaped(name), r.MS/1e3)
	first, _, _ := strings.Cut(r.Message, "\n")
	switch r.Outcome {
	case Skipped:
		j.skipped++
		fmt.Fprintf(&b, `<skipped message="%s"/>`, escaped(first))
	case Partial, Failed:
		j.failures++
		fmt.Fprintf(&b, `<failure type="%s" message="%s">%s</failure>`, r.Outcome, escaped(first), escaped(r.Message))
	}
	if r.Log != "" {
		fmt.Fprintf(&b, `<system-out>%s</system-out>`, escaped(r.Log))
	}
	b.WriteString("</testcase>\n")
	_, err := j.out.Write(b.Bytes())
	return err
}

// escaped escapes text for XML, also in attributes. Characters that XML does not allow become U+FFFD (XML 1.0, 2.2).
func escaped(s string) string {
	var b bytes.Buffer
	_ = xml.EscapeText(&b, []byte(s)) // writing to a Buffer never fails
	return b.String()
}

// Close completes the file and renames it to its final name.
func (j *JUnit) Close() error {
	_, err := j.out.WriteString("</testsuite>\n</testsuites>\n")
	if err == nil {
		err = j.out.Flush()
	}
	if err == nil {
		const declared = `<?xml version="1.0" encoding="UTF-8"?>` + "\n<testsuites>\n"
		head := fmt.Sprintf(declared+`<testsuite name="reframe replay" tests="%d" failures="%d" errors="0" skipped="%d" time="%.3f"`,
			j.tests, j.failures, j.skipped, time.Since(j.began).Seconds())
		_, err = j.file.WriteAt(fmt.Appendf(nil, "%-*s>\n", junitHead-len(">\n"), head), 0)
	}
	return j.file.Finish(err)
}
