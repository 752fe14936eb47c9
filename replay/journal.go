package replay

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
)

// JournalSchema names the format of a [Journal].
const JournalSchema = "reframe.replay.journal/v1"

// maxLine bounds a line of a journal, in bytes: twice the size of the largest result with every character escaped.
const maxLine = 4 << 20

// Journal stores results in a file, so that a killed run can be continued. The first line identifies the run. Each further line contains a result, or
// an item that was begun. Each line is written by one call, so that after kill -9 at most the last line is incomplete; it is removed when the journal
// is opened again. Only one run at a time can use a journal, which is locked if the system supports locks.
//
// A result is valid as long as its item, and each file that its script passed to core, launch or verify, has the same size and modification time.
//
// An item that kills the whole process, for example because it uses too much memory, would do so again each time that a cluster restarts the run.
// Therefore an item fails after [maxKills] runs were killed while they processed it.
//
// The file is not synced to the disk: if the machine fails, results may be lost and are computed again.
type Journal struct {
	path string
	file *os.File
	mu   sync.Mutex
	old  map[string]place  // results that existed when the journal was opened
	left map[begunItem]int // items without a result, with the number of runs that were killed while they processed each
	open int               // number of items that this run has begun but not finished
	err  error             // the error of a write; then no line is written, because it would be appended to an incomplete one
}

// maxKills bounds the number of runs that are killed while they process an item.
const maxKills = 3

// begunItem is an item that was begun, with the state of its file at that time.
type begunItem struct {
	Path string `json:"path"`
	fileState
}

// place is the position of a result in the journal, with the state of the item's file.
type place struct {
	at    int64
	size  int
	state fileState
}

// fileState identifies the content of a file by its size and modification time.
type fileState struct {
	Size  int64 `json:"size"`
	Mtime int64 `json:"mtime_ns"` // nanoseconds since 1970
}

// stateOf returns the state of a file; it is zero if the file does not exist.
func stateOf(path string) fileState {
	info, err := os.Stat(path)
	if err != nil {
		return fileState{}
	}
	return fileState{info.Size(), info.ModTime().UnixNano()}
}

type journalHead struct {
	Schema string   `json:"schema"`
	Of     []string `json:"of"`
}

// journalLine is a line of the journal: a result, an item that was begun, or the end of a run.
type journalLine struct {
	File *fileState `json:"file,omitempty"` // the state for which the result is valid
	// Uses are the other files on which the result depends.
	Uses   map[string]fileState `json:"uses,omitempty"`
	Result *Result              `json:"result,omitempty"`
	Begun  *begunItem           `json:"begun,omitempty"`
	// Ended marks the normal end of a run: no item that it had begun has killed it.
	Ended bool `json:"ended,omitempty"`
}

// OpenJournal opens a journal, or creates it. belongs lists the user's inputs on which the results depend. A journal that was made with another list
// is an error.
func OpenJournal(path string, belongs []string) (*Journal, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	j := &Journal{path: path, file: f, old: map[string]place{}, left: map[begunItem]int{}}
	err = lock(f)
	if err == nil {
		err = j.load(belongs)
	}
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return j, nil
}

// Close closes the file.
func (j *Journal) Close() error { return j.file.Close() }

// load reads the positions of results, and removes an incomplete last line.
func (j *Journal) load(belongs []string) error {
	head, err := lineOf(journalHead{JournalSchema, belongs})
	if err != nil {
		return err
	}
	r := bufio.NewReaderSize(j.file, 64<<10)
	whole := int64(0) // size of the complete lines
	for n := 1; ; n++ {
		line, err := readLine(r)
		if err == io.EOF {
			if n == 1 && !bytes.HasPrefix(head, line) { // an incomplete first line is completed below
				return errNoJournal
			}
			break
		}
		if err == nil && n == 1 {
			err = sameRun(line, belongs)
		} else if err == nil {
			var l journalLine
			if err = json.Unmarshal(line, &l); err == nil {
				j.note(&l, place{at: whole, size: len(line)})
			}
		}
		if err != nil {
			return fmt.Errorf("line %d: %w", n, err)
		}
		whole += int64(len(line))
	}
	// Truncate by name: Windows does not truncate a file that is open for appending.
	if err := os.Truncate(j.path, whole); err != nil {
		return err
	}
	if whole > 0 {
		return nil
	}
	return j.write(head, 0)
}

// note records a line at p.
func (j *Journal) note(l *journalLine, p place) {
	switch {
	case l.Ended:
		clear(j.left)
	case l.Begun != nil:
		j.left[*l.Begun]++
	case l.Result != nil && l.File != nil:
		p.state = *l.File
		j.old[l.Result.Path] = p
		delete(j.left, begunItem{l.Result.Path, p.state})
	}
}

var errNoJournal = errors.New("not a journal of reframe replay; the file was not changed")

// readLine returns the next line with its newline. It returns io.EOF at the end of the file, or if the line is incomplete.
func readLine(r *bufio.Reader) ([]byte, error) {
	var line []byte
	for {
		part, err := r.ReadSlice('\n')
		line = append(line, part...)
		switch {
		case len(line) > maxLine:
			return nil, errors.New("too long for a journal")
		case err != bufio.ErrBufferFull:
			return line, err
		}
	}
}

// sameRun returns an error unless the first line of the journal was written by a run with the same inputs as the current one.
func sameRun(line []byte, belongs []string) error {
	var head journalHead
	if err := json.Unmarshal(line, &head); err != nil || head.Schema != JournalSchema {
		return errNoJournal
	}
	for i := range max(len(head.Of), len(belongs)) {
		was, is := "nothing more", "nothing more"
		if i < len(head.Of) {
			was = head.Of[i]
		}
		if i < len(belongs) {
			is = belongs[i]
		}
		if was != is {
			return fmt.Errorf("the journal belongs to a run with %q, but this run has %q; use another journal, or remove this one", was, is)
		}
	}
	return nil
}

// find returns the result of an item if the item and all files that it used are unchanged.
func (j *Journal) find(path string, state fileState) (*Result, bool) {
	p, ok := j.old[path]
	if !ok || p.state != state {
		return nil, false
	}
	line := make([]byte, p.size)
	var l journalLine
	if _, err := j.file.ReadAt(line, p.at); err != nil || json.Unmarshal(line, &l) != nil || l.Result == nil || l.Result.Path != path {
		return nil, false // another program has changed the journal, so the item is processed again
	}
	for used, was := range l.Uses {
		if stateOf(used) != was {
			return nil, false
		}
	}
	return l.Result, true
}

// begin records that an item is begun, and returns how many runs were killed while they processed it.
func (j *Journal) begin(path string, state fileState) (kills int, err error) {
	item := begunItem{path, state}
	return j.left[item], j.append(journalLine{Begun: &item}, 1)
}

// add appends a result, unless the result depends on too many files.
func (j *Journal) add(r *Result, state fileState, u *uses) error {
	files, ok := u.all()
	if !ok {
		return nil
	}
	return j.append(journalLine{File: &state, Uses: files, Result: r}, -1)
}

// end records the end of the run if items were begun but not completed.
func (j *Journal) end() error {
	if j.open == 0 {
		return nil
	}
	return j.append(journalLine{Ended: true}, -j.open)
}

// append writes a line. open is the change in the number of items that were begun and have no result.
func (j *Journal) append(l journalLine, open int) error {
	line, err := lineOf(l)
	if err == nil {
		err = j.write(line, open)
	}
	if err != nil {
		return fmt.Errorf("cannot write the journal: %w", err)
	}
	return nil
}

// write appends a line with one call, so that lines do not mix.
func (j *Journal) write(line []byte, open int) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.err == nil {
		j.open += open
		_, j.err = j.file.Write(line)
	}
	return j.err
}

func lineOf(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	return b.Bytes(), err
}
