package newfile

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/test/livetest"
)

// makeFile creates a file with a text.
func makeFile(path, text string, err error) error {
	f, create := Create(path, true)
	if create != nil {
		return create
	}
	_, write := f.WriteString(text)
	return f.Finish(errors.Join(write, err))
}

func names(t *testing.T, dir string) (list []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	for _, e := range entries {
		list = append(list, e.Name())
	}
	return list
}

func requireText(t *testing.T, want, path string) {
	t.Helper()
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, want, string(text))
}

func TestFile(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "file")

	f, err := Create(path, false)
	require.NoError(t, err)
	_, err = f.WriteString("half")
	require.NoError(t, err)
	require.NoFileExists(t, path, "before it is whole")
	require.NoError(t, f.Finish(nil))
	requireText(t, "half", path)
	info, err := os.Stat(path)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode())

	require.NoError(t, makeFile(path, "other", nil))
	requireText(t, "other", path)

	require.ErrorIs(t, makeFile(path, "bad", syscall.ENOSPC), syscall.ENOSPC)
	requireText(t, "other", path)
	require.ErrorIs(t, makeFile(filepath.Join(dir, "fresh"), "bad", syscall.ENOSPC), syscall.ENOSPC)
	require.Equal(t, []string{"file"}, names(t, dir))
}

// TestLink requires that the target of a link is replaced, not the link.
func TestLink(t *testing.T) {
	dir, elsewhere := t.TempDir(), t.TempDir()
	file, link := filepath.Join(elsewhere, "file"), filepath.Join(dir, "link")
	require.NoError(t, os.WriteFile(file, []byte("old"), 0o600))
	require.NoError(t, os.Symlink(file, link))
	require.NoError(t, makeFile(link, "new", nil))
	requireText(t, "new", file)
	to, err := os.Readlink(link)
	require.NoError(t, err)
	require.Equal(t, file, to)
	require.Equal(t, []string{"file"}, names(t, elsewhere))
}

func TestRefused(t *testing.T) {
	dir := t.TempDir()
	pipe := filepath.Join(dir, "pipe")
	require.NoError(t, syscall.Mkfifo(pipe, 0o600))
	for _, path := range []string{dir, pipe, "/dev/null"} {
		require.EqualError(t, makeFile(path, "text", nil), "create "+path+": file exists: it is not a regular file")
	}
	require.ErrorIs(t, makeFile(filepath.Join(dir, "none", "file"), "text", nil), os.ErrNotExist)
	require.ErrorIs(t, makeFile(filepath.Join(pipe, "file"), "text", nil), syscall.ENOTDIR)
	require.Equal(t, []string{"pipe"}, names(t, dir))
}

// TestNothingIsLost requires that a file with content is kept, even if it was created in the meantime. An empty file may be replaced.
func TestNothingIsLost(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	require.NoError(t, os.WriteFile(at("mine"), []byte("mine"), 0o600))
	require.NoError(t, os.WriteFile(at("empty"), nil, 0o600))
	require.NoError(t, os.Symlink("mine", at("link")))
	require.NoError(t, os.Link(at("mine"), at("hard")))
	for _, name := range []string{"mine", "link", "hard"} {
		_, err := Create(at(name), false)
		require.ErrorIs(t, err, os.ErrExist, name)
		_, err = Stream(t.Context(), at(name), false)
		require.EqualError(t, err, "create "+at(name)+": file already exists")
		require.ErrorIs(t, Free(at(name)), os.ErrExist, name)
	}
	requireText(t, "mine", at("mine"))
	require.NoError(t, Free(at("empty")))
	require.NoError(t, Free(at("none")))
	require.NoError(t, Free("/dev/null"))

	f, err := Create(at("empty"), false)
	require.NoError(t, err)
	_, err = f.WriteString("new")
	require.NoError(t, err)
	require.NoError(t, f.Finish(nil))
	requireText(t, "new", at("empty"))

	// This file appears while the other is written.
	f, err = Create(at("late"), false)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(at("late"), []byte("mine"), 0o600))
	require.ErrorIs(t, f.Finish(nil), os.ErrExist)
	requireText(t, "mine", at("late"))
	require.Equal(t, []string{"empty", "hard", "late", "link", "mine"}, names(t, dir))

	for _, path := range []string{at("stream"), at("mine"), "/dev/null"} {
		s, err := Stream(t.Context(), path, true)
		if path == at("stream") {
			s, err = Stream(t.Context(), path, false)
		}
		require.NoError(t, err)
		_, err = s.WriteString("by")
		require.NoError(t, err)
		require.NoError(t, s.Close())
	}
	requireText(t, "by", at("stream"))
	requireText(t, "by", at("hard"))
	require.ErrorIs(t, func() error { _, err := Stream(t.Context(), dir, false); return err }(), syscall.EISDIR)
}

func TestSame(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	require.NoError(t, os.WriteFile(at("a"), nil, 0o600))
	require.NoError(t, os.WriteFile(at("b"), nil, 0o600))
	require.NoError(t, os.Symlink("a", at("link")))
	require.NoError(t, os.Link(at("a"), at("hard")))
	for _, c := range []struct {
		one, other string
		same       bool
	}{
		{"a", "a", true}, {"a", "b", false}, {"a", "link", true}, {"hard", "link", true}, {"b", "hard", false}, {"none", "none", true},
		{"none", "./none", true}, {"none", "a", false}, {"none", "other", false},
	} {
		require.Equal(t, c.same, Same(at(c.one), dir+"/"+c.other), c)
	}
}

// TestUnused requires that the name of an existing file gets a number. Another error ends the search.
func TestUnused(t *testing.T) {
	dir := t.TempDir()
	create := func(path string) error {
		f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL, 0o600)
		if err == nil {
			err = f.Close()
		}
		return err
	}
	for _, want := range []string{"a.core", "a-2.core", "a-3.core"} {
		path, err := Unused(dir, "a.core", 3, create)
		require.NoError(t, err)
		require.Equal(t, filepath.Join(dir, want), path)
	}
	_, err := Unused(dir, "a.core", 3, create)
	require.ErrorIs(t, err, os.ErrExist)
	_, err = Unused(filepath.Join(dir, "nowhere"), "a.core", 3, create)
	require.ErrorIs(t, err, os.ErrNotExist)
}

// TestEmptyFileOfAnotherUser requires that an existing file of another user is not written to, even if it is empty: that user could read it.
func TestEmptyFileOfAnotherUser(t *testing.T) {
	livetest.NeedsTools(t)
	require.Zero(t, os.Geteuid(), "this test makes a file of another user: run it as root")
	path := filepath.Join(t.TempDir(), "waiting")
	require.NoError(t, os.WriteFile(path, nil, 0o666))
	require.NoError(t, os.Chown(path, 65534, 65534))
	const why = "it belongs to another user"
	require.ErrorContains(t, Free(path), why)
	require.ErrorIs(t, Free(path), os.ErrExist)
	require.ErrorContains(t, makeFileUnforced(path), why)
	_, err := Stream(t.Context(), path, false)
	require.ErrorContains(t, err, why)
	require.NoError(t, makeFile(path, "the user's own choice", nil))
	info, err := os.Stat(path)
	require.NoError(t, err)
	require.False(t, foreign(info), "a new file took its place")
}

func makeFileUnforced(path string) error {
	f, err := Create(path, false)
	if err != nil {
		return err
	}
	return f.Finish(nil)
}

// TestStreamIsPrivate requires that only the owner can read a streamed file.
func TestStreamIsPrivate(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	f, err := Stream(t.Context(), path, false)
	require.NoError(t, err)
	defer f.Close()
	info, err := f.Stat()
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode())
}

// TestPipe requires that opening a pipe without a reader ends when ctx is cancelled, and that opening one with a reader succeeds.
func TestPipe(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pipe")
	require.NoError(t, syscall.Mkfifo(path, 0o600))
	ctx, cancel := context.WithCancelCause(t.Context())
	given := errors.New("given up")
	opened := make(chan error, 1)
	go func() {
		_, err := Stream(ctx, path, false)
		opened <- err
	}()
	cancel(given)
	require.ErrorIs(t, <-opened, given)

	go func() {
		s, err := Stream(t.Context(), path, false)
		if err == nil {
			_, err = s.WriteString("text")
			err = errors.Join(err, s.Close())
		}
		opened <- err
	}()
	requireText(t, "text", path)
	require.NoError(t, <-opened)
}
