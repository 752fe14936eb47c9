package house

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// textsOfTheRepository returns the text files of the repository by their paths.
func textsOfTheRepository(t *testing.T) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(".", func(file string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if d.Name() == ".git" {
				return filepath.SkipDir
			}
			return nil
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		if !info.Mode().IsRegular() || info.Size() > 1<<20 { // images and cores
			return nil
		}
		text, err := os.ReadFile(file)
		if err == nil && !bytes.ContainsRune(text, 0) {
			all[filepath.ToSlash(file)] = string(text)
		}
		return err
	})
	require.NoError(t, err)
	return all
}

// documentPath matches the path of a file or folder in doc, relative to the root or, with ../, to another folder.
var documentPath = regexp.MustCompile(`(?:^|[^\w/.-])(?:\.\./)*(doc/[\w./-]*\w)`)

// missingPaths returns the paths in a text that start with doc/ and do not exist.
func missingPaths(text string) (missing []string) {
	for _, m := range documentPath.FindAllStringSubmatch(text, -1) {
		if _, err := os.Stat(m[1]); err != nil {
			missing = append(missing, m[1])
		}
	}
	return missing
}

var (
	markdownLink = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	heading      = regexp.MustCompile(`(?m)^#+ (.*)$`)
	notInAnchor  = regexp.MustCompile(`[^\p{L}\p{N} _-]`)
)

// anchors returns the anchors of the headings in a document, by the rules of GitHub and gitea.
func anchors(text string) map[string]bool {
	all := map[string]bool{}
	for _, m := range heading.FindAllStringSubmatch(text, -1) {
		all[strings.ReplaceAll(notInAnchor.ReplaceAllString(strings.ToLower(m[1]), ""), " ", "-")] = true
	}
	return all
}

// brokenLinks returns the links in a document to files and headings that do not exist. folder contains the document.
func brokenLinks(folder, text string) (broken []string) {
	for _, m := range markdownLink.FindAllStringSubmatch(text, -1) {
		if strings.Contains(m[1], "://") {
			continue
		}
		target, anchor, hasAnchor := strings.Cut(m[1], "#")
		linked := text
		if target != "" {
			file := filepath.Join(folder, target)
			info, err := os.Stat(file)
			if err != nil {
				broken = append(broken, m[1])
				continue
			}
			if info.IsDir() || !hasAnchor {
				continue
			}
			content, err := os.ReadFile(file)
			if err != nil {
				broken = append(broken, m[1])
				continue
			}
			linked = string(content)
		}
		if hasAnchor && !anchors(linked)[anchor] {
			broken = append(broken, m[1])
		}
	}
	return broken
}

// TestDocumentPathsExist requires that each path below doc that a text file of the repository names exists, and that links between documents lead to
// existing files and headings.
func TestDocumentPathsExist(t *testing.T) {
	inRoot(t)
	named, links := 0, 0
	for file, text := range textsOfTheRepository(t) {
		if file == "test/house/links_test.go" { // this file has examples of missing documents
			continue
		}
		require.Empty(t, missingPaths(text), file)
		named += len(documentPath.FindAllString(text, -1))
		if strings.HasSuffix(file, ".md") {
			require.Empty(t, brokenLinks(filepath.Dir(file), text), file)
			links += len(markdownLink.FindAllString(text, -1))
		}
	}
	require.Greater(t, named, 100)
	require.Greater(t, links, 100)

	require.Equal(t, []string{"doc/nosuch.md", "doc/user/nosuch"}, missingPaths("doc/nosuch.md `doc/user/nosuch`. ../../doc/user/schema/ /usr/share/doc/x (doc/user/verbs.md)"))
	require.Equal(t, []string{"nosuch.md", "verbs.md#nosuch", "#nosuch"},
		brokenLinks("doc/user", "# A `word`: or two\n[a](nosuch.md) [b](verbs.md#nosuch) [c](#nosuch) [d](#a-word-or-two) [e](../user) [f](https://example.com/nosuch)"))
}

// packagePath matches the path of a package below internal/.
var packagePath = regexp.MustCompile(`(?:^|[^/\w])(internal/[a-z0-9/]+)`)

// TestPackagePathsExist requires that each folder or Go file below internal/ that a maintainer's document names exists.
func TestPackagePathsExist(t *testing.T) {
	inRoot(t)
	documents, err := filepath.Glob("doc/dev/*.md")
	require.NoError(t, err)
	named := 0
	for _, file := range documents {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		for _, match := range packagePath.FindAllStringSubmatch(string(text), -1) {
			p := strings.TrimSuffix(match[1], "/")
			files, err := filepath.Glob(p + "*") // the path may be a prefix: of a file name, or of several files
			require.NoError(t, err)
			require.NotEmpty(t, files, "%s names %s", file, p)
			named++
		}
	}
	require.Greater(t, named, 30)
}

// TestDocumentsAreListed requires that doc/README.md links to each document.
func TestDocumentsAreListed(t *testing.T) {
	inRoot(t)
	index, err := os.ReadFile("doc/README.md")
	require.NoError(t, err)
	documents, err := filepath.Glob("doc/*/*.md")
	require.NoError(t, err)
	require.Greater(t, len(documents), 20)
	for _, d := range documents {
		require.Contains(t, string(index), "]("+strings.TrimPrefix(filepath.ToSlash(d), "doc/")+")", "doc/README.md does not link to %s", d)
	}
}
