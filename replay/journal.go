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

// maxLine bounds a line of a journal, in bytes: twice what the bounds of a result allow, with every
// character escaped.
const maxLine = 4 << 20

// Journal keeps results in a file, so that a run that was killed can go on. The first line says what
// the results belong to, each further one has one result, or an item that was begun. A line is written as a whole,
// so that what kill -9 leaves is whole but for the last line, which is dropped when the
// journal is opened again. A journal is for one run at a time: where the system has locks, a second one is refused.
//
// A result is used for as long as its item has the same size and time of change, and so has each file that its script named to
// core, launch or verify.
//
// An item that takes the whole process with it, such as by the memory that it needs, would do so each time a
// cluster starts the run again. What was begun in [maxKills] runs that were killed fails instead.
//
// The file is not flushed to the disk: where the machine itself goes down, results may be lost and are
// made again.
type Journal struct {
	path string
	file *os.File
	mu   sync.Mutex
	old  map[string]place  // of the results that were there when it was opened
	left map[begunItem]int // items that were begun then, and have no result: in how many runs that were killed
	open int               // how many items this run has begun that have no result
	err  error             // of a write: what follows it would not be on a line of its own
}

// maxKills is how often a run may be killed while it does an item.
const maxKills = 3

// begunItem is an item in the state in which it was begun.
type begunItem struct {
	Path string `json:"path"`
	fileState
}

// place is where in the file a result lies, and of which state of its item it is.
type place struct {
	at    int64
	size  int
	state fileState
}

// fileState tells a file from what it was before.
type fileState struct {
	Size  int64 `json:"size"`
	Mtime int64 `json:"mtime_ns"` // since 1970
}

// stateOf is the zero state of a file that is not there.
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

// journalLine is a result, or one of the others.
type journalLine struct {
	File *fileState `json:"file,omitempty"` // as it was for the result
	// Uses are the other files that decided about it.
	Uses   map[string]fileState `json:"uses,omitempty"`
	Result *Result              `json:"result,omitempty"`
	Begun  *begunItem           `json:"begun,omitempty"`
	// Ended says that a run has come to an orderly end: what it had begun and not done killed nobody.
	Ended bool `json:"ended,omitempty"`
}

// OpenJournal opens a journal, or begins it. Its results are used for a run with the same
// belongings: what the user gave that decides what comes out, one thing each. Those of another run are
// an error.
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

// load reads where results lie, and cuts off a line that was not written to its end.
func (j *Journal) load(belongs []string) error {
	head, err := lineOf(journalHead{JournalSchema, belongs})
	if err != nil {
		return err
	}
	r := bufio.NewReaderSize(j.file, 64<<10)
	whole := int64(0) // bytes of whole lines
	for n := 1; ; n++ {
		line, err := readLine(r)
		if err == io.EOF {
			if n == 1 && !bytes.HasPrefix(head, line) { // of a beginning the rest is written
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
	// By its name: Windows does not let a file that is open for appending be cut.
	if err := os.Truncate(j.path, whole); err != nil {
		return err
	}
	if whole > 0 {
		return nil
	}
	return j.write(head, 0)
}

// note takes in a line that lies at p.
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

var errNoJournal = errors.New("this is no journal of reframe replay; it is left as it is")

// readLine returns the next line with its end, and io.EOF where there is none, or none that has one.
func readLine(r *bufio.Reader) ([]byte, error) {
	var line []byte
	for {
		part, err := r.ReadSlice('\n')
		line = append(line, part...)
		switch {
		case len(line) > maxLine:
			return nil, errors.New("too long to be of a journal")
		case err != bufio.ErrBufferFull:
			return line, err
		}
	}
}

// sameRun holds the first line against the run that there is now.
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
			return fmt.Errorf("the journal is of a run with %q, and this one has %q; name another journal, or remove this one", was, is)
		}
	}
	return nil
}

// find returns the result of an item that is still as it was, with all that it used.
func (j *Journal) find(path string, state fileState) (*Result, bool) {
	p, ok := j.old[path]
	if !ok || p.state != state {
		return nil, false
	}
	line := make([]byte, p.size)
	var l journalLine
	if _, err := j.file.ReadAt(line, p.at); err != nil || json.Unmarshal(line, &l) != nil || l.Result == nil || l.Result.Path != path {
		return nil, false // somebody has changed the file meanwhile: it is made again
	}
	for used, was := range l.Uses {
		if stateOf(used) != was {
			return nil, false
		}
	}
	return l.Result, true
}

// begin notes that an item is begun, and returns how many runs were killed at that before.
func (j *Journal) begin(path string, state fileState) (kills int, err error) {
	item := begunItem{path, state}
	return j.left[item], j.append(journalLine{Begun: &item}, 1)
}

// add appends a result, unless it is of too many files.
func (j *Journal) add(r *Result, state fileState, u *uses) error {
	files, ok := u.all()
	if !ok {
		return nil
	}
	return j.append(journalLine{File: &state, Uses: files, Result: r}, -1)
}

// end notes that the run has come to its end, where it leaves something that it has begun.
func (j *Journal) end() error {
	if j.open == 0 {
		return nil
	}
	return j.append(journalLine{Ended: true}, -j.open)
}

// append writes a line. open is by how many there are more items that have no result.
func (j *Journal) append(l journalLine, open int) error {
	line, err := lineOf(l)
	if err == nil {
		err = j.write(line, open)
	}
	if err != nil {
		return fmt.Errorf("the journal cannot be kept: %w", err)
	}
	return nil
}

// write appends a line by one call, so that no other can come between.
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
