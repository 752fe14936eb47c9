package main

import (
	"debug/elf"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/test/livetest"
)

// sh runs a script and returns its output.
func sh(t *testing.T, dir, script string, args ...string) string {
	t.Helper()
	c := exec.Command(livetest.Tool(t, "sh"), append([]string{"-euc", script, "sh"}, args...)...)
	c.Dir = dir
	c.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null", "GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@example.org",
		"GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@example.org", "GIT_AUTHOR_DATE=@1700000000 +0000", "GIT_COMMITTER_DATE=@1700000000 +0000")
	out, err := c.CombinedOutput()
	require.NoError(t, err, "%s\n%s", script, out)
	return string(out)
}

// TestRelease requires that a commit gives the same release from its repository and from an archive without git, in another directory, with another
// umask and time zone. It commits the working tree, with a tag. make release-check does this for all platforms and without a build cache.
func TestRelease(t *testing.T) {
	livetest.OnlyWhole(t)
	work := t.TempDir()
	first, second := filepath.Join(work, "first"), filepath.Join(work, "the second of the two") // a path with spaces
	sh(t, "../..", `mkdir "$1" "$2"
{ git ls-files -z -co --exclude-standard 2>/dev/null || find . -type f -print0; } | tar --null --ignore-failed-read -T - -cf - 2>/dev/null | tar -xf - -C "$1"
cd "$1"
case $(cat cmd/reframe/version.txt) in "\$Format:"*) ;; *) printf '$Format:%%(describe:tags) %%H %%ct$\n' > cmd/reframe/version.txt ;; esac
git init -q . && git add -A && git commit -qm one && git tag v9.8.7
git archive HEAD | tar -xf - -C "$2"`, first, second)

	const release = `go run ./scripts/release -only linux/amd64 -toolchain local -o "$1"`
	sh(t, first, release, work+"/a")
	sh(t, second, "umask 077; TZ=Asia/Tokyo LC_ALL=C USER=nobody HOSTNAME=elsewhere "+release, work+"/b")
	sh(t, work, "diff -r a b")
	sh(t, work+"/a", "sha256sum --check --strict SHA256SUMS")
	entries, err := os.ReadDir(work + "/a")
	require.NoError(t, err)
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	require.Equal(t, []string{"SHA256SUMS", "reframe-9.8.7-1.x86_64.rpm", "reframe-9.8.7-linux-amd64.tar.gz", "reframe_9.8.7-1_amd64.deb"}, names)

	version := fmt.Sprintf("reframe version v9.8.7, %s, linux/amd64\n", runtime.Version())
	installed := map[string]string{
		"archive": sh(t, work, `tar -xzf a/*.tar.gz; cat reframe-9.8.7-linux-amd64/LICENSE > /dev/null; reframe-9.8.7-linux-amd64/reframe --version`),
		"deb":     sh(t, work, `dpkg-deb -x a/*.deb deb; deb/usr/bin/reframe --version`),
		"rpm":     sh(t, work, `mkdir rpm; cd rpm; cat ../a/*.rpm | rpm2archive - | tar -xzf -; usr/bin/reframe --version`),
		"dpkg": sh(t, work, `mkdir -p root/var/lib/dpkg/updates root/var/lib/dpkg/info; touch root/var/lib/dpkg/status
dpkg --root=root --log=/dev/null -i a/*.deb > /dev/null 2>&1; test "$(dpkg --root=root -S /usr/bin/reframe)" = "reframe: /usr/bin/reframe"; root/usr/bin/reframe --version`),
	}
	for how, said := range installed {
		require.Equal(t, version, said, how)
	}
	require.Contains(t, sh(t, work, "deb/usr/bin/reframe demo"), "\nthey agree\n")
	require.Equal(t, "9.8.7 amd64\n", sh(t, work, `dpkg-deb -f a/*.deb Version Architecture | sed 's/.*: //; s/-1$//' | paste -sd' '`))
	require.Contains(t, sh(t, work, "rpm --dbpath \"$PWD/rpmdb\" -qp --queryformat '%{NAME} %{VERSION} %{ARCH} %{BUILDHOST} %{BUILDTIME}' a/*.rpm"), "reframe 9.8.7 x86_64 localhost 1700000000")
	for _, path := range []string{
		"/usr/share/bash-completion/completions/reframe", "/usr/share/zsh/vendor-completions/_reframe", "/usr/share/fish/vendor_completions.d/reframe.fish",
		"/usr/share/man/man1/reframe.1.gz", "/usr/share/man/man1/reframe-frames.1.gz", "/usr/share/doc/reframe/copyright", "/usr/share/doc/reframe/CHANGELOG.md", "/usr/share/doc/reframe/doc/user/host.md", "/usr/share/doc/reframe/examples/host.c",
	} {
		require.FileExists(t, work+"/deb"+path)
		require.FileExists(t, work+"/rpm"+path)
	}
	program, err := elf.Open(work + "/deb/usr/bin/reframe")
	require.NoError(t, err)
	defer program.Close()
	for _, p := range program.Progs {
		require.NotEqual(t, elf.PT_INTERP, p.Type, "not static")
	}

	// make uninstall removes what make install installs.
	sh(t, first, `make -s install DESTDIR="$1" PREFIX=/usr`, work+"/root2")
	sh(t, work, `root2/usr/bin/reframe --version; bash -nc '. root2/usr/share/bash-completion/completions/reframe'
test -s root2/usr/share/man/man1/reframe-trace.1 && test -s root2/usr/share/zsh/site-functions/_reframe && test -s root2/usr/share/fish/vendor_completions.d/reframe.fish`)
	require.Empty(t, sh(t, first, `make -s uninstall DESTDIR="$1" PREFIX=/usr; find "$1" -type f`, work+"/root2"))

	// The files must not reveal where, when and by whom they were built.
	content := sh(t, work, "tar -tvzf a/*.tar.gz; dpkg-deb -c a/*.deb; strings -a deb/usr/bin/reframe | grep -F "+work+" || true", work)
	require.NotContains(t, content, work)
	for line := range strings.Lines(content) {
		require.Contains(t, line, " root/root ")
		require.Contains(t, line, " 2023-11-14 22:13 ")
	}
}

// TestReleaseRefused requires that uncommitted changes, and a directory that is neither a checkout nor an archive, are refused.
func TestReleaseRefused(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	require.ErrorContains(t, run("out", platforms, "local"), "version.txt")
	sh(t, dir, `git init -q . && mkdir -p cmd/reframe && printf '$Format:%%(describe:tags) %%H %%ct$\n' > cmd/reframe/version.txt && git add -A && git commit -qm one`)
	require.ErrorContains(t, run("out", platforms, "local"), "neither a git checkout nor an archive")
	require.NoError(t, os.WriteFile("new", nil, 0o600))
	require.ErrorContains(t, run("out", platforms, "local"), "not committed")
	require.ErrorContains(t, run(".", platforms, "local"), "exists")
	require.ErrorContains(t, run("out", []string{"linux"}, "local"), "-only linux")
	require.NoFileExists(t, "out")
}

// TestVersions requires that a package's version sorts after the version of the tag that precedes its commit: by deb-version(7), whose rules here are
// the same as rpm's.
func TestVersions(t *testing.T) {
	for text, want := range map[string]string{
		"v1.2.3 0123456789abcdef 1700000000":             "1.2.3",
		"v1.2.3-14-g0123456 0123456789abcdef 1700000000": "1.2.3+14.g0123456",
		"0123456789abcdef 1700000000":                    "0.0.0+20231114221320.0123456789ab",
	} {
		dir := t.TempDir()
		require.NoError(t, os.MkdirAll(filepath.Join(dir, "cmd/reframe"), 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(dir, "cmd/reframe/version.txt"), []byte(text+"\n"), 0o644))
		r := &release{src: dir}
		require.NoError(t, r.identify())
		require.Equal(t, want, r.version)
	}
	sh(t, ".", "dpkg --compare-versions 1.2.3+14.g0123456-1 gt 1.2.3-1 && dpkg --compare-versions 1.2.3+14.g0123456-1 lt 1.2.4-1")
}
