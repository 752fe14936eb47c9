// Command release builds the files that are published for one commit: for each platform an archive with the program, its documents, manual pages,
// completions and examples; for Linux also a .deb and an .rpm; and SHA256SUMS. make release runs it:
//
//	go run ./scripts/release [-o DIR] [-only linux/amd64,...] [-toolchain local]
//
// It builds from an archive of the commit that is checked out, never from the working tree. Without git, the directory must be such an archive. The
// same commit gives the same bytes on any machine and at any time: the release of Go is fixed, the files contain no path or name of the machine, and
// all times are the commit's. Its main type is release, one run. It trusts the repository and its environment.
package main

import (
	"crypto/sha256"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"
)

// toolchain is the release of Go that builds the release; Go downloads it if it is not installed.
const toolchain = "go1.26.8"

var platforms = []string{"linux/amd64", "linux/arm64", "darwin/amd64", "darwin/arm64", "windows/amd64", "windows/arm64"}

func main() {
	out := flag.String("o", "dist", "put the files into `DIR`, which must not exist")
	only := flag.String("only", strings.Join(platforms, ","), "build for these `platforms`")
	with := flag.String("toolchain", toolchain, "build with this release of Go (GOTOOLCHAIN)")
	flag.Parse()
	if err := run(*out, strings.Split(*only, ","), *with); err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

func run(out string, platforms []string, toolchain string) error {
	for _, p := range platforms {
		if strings.Count(p, "/") != 1 {
			return fmt.Errorf("-only %s: want system/architecture", p)
		}
	}
	out, err := filepath.Abs(out)
	if err != nil {
		return err
	}
	if _, err := os.Stat(out); err == nil {
		return fmt.Errorf("%s exists: remove it, or name another with -o", out)
	}
	work, err := os.MkdirTemp("", "reframe-release-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	r := &release{work: work, out: filepath.Join(work, "out"), toolchain: toolchain}
	if err := os.Mkdir(r.out, 0o755); err != nil {
		return err
	}
	if err := r.source(); err != nil {
		return err
	}
	if err := r.identify(); err != nil {
		return err
	}
	if err := r.documents(); err != nil {
		return err
	}
	for _, p := range platforms {
		fmt.Fprintln(os.Stderr, "release:", r.version, p)
		if err := r.platform(p); err != nil {
			return fmt.Errorf("%s: %w", p, err)
		}
	}
	if err := r.sums(); err != nil {
		return err
	}
	return command("", "cp", "-r", r.out, out).Run() // cp works across file systems, too
}

// A release holds the state of one run.
type release struct {
	work, src, out, toolchain string

	version string    // without the v of the tag
	date    time.Time // of the commit
	share   []string  // paths below work/share of the files that every platform gets in addition to the program
}

// source sets or extracts the source of the commit.
func (r *release) source() error {
	if _, err := os.Stat(".git"); err != nil { // not a checkout: an archive, or identify returns an error
		here, err := os.Getwd()
		r.src = here
		return err
	}
	changed, err := exec.Command("git", "status", "--porcelain").Output()
	if err != nil {
		return fmt.Errorf("git status: %w", err)
	}
	if len(changed) > 0 {
		return fmt.Errorf("what is not committed would not be in it:\n%s", changed)
	}
	r.src = filepath.Join(r.work, "src")
	archive := filepath.Join(r.work, "src.tar")
	return errors.Join(
		os.Mkdir(r.src, 0o755),
		command("", "git", "archive", "-o", archive, "HEAD").Run(),
		command(r.src, "tar", "-xf", archive).Run())
}

// identify reads the version and date that git archive wrote.
func (r *release) identify() error {
	text, err := os.ReadFile(filepath.Join(r.src, "cmd/reframe/version.txt"))
	if err != nil {
		return err
	}
	fields := strings.Fields(string(text))
	if strings.HasPrefix(string(text), "$Format:") || len(fields) < 2 {
		return errors.New("this is neither a git checkout nor an archive of git's: cmd/reframe/version.txt does not say which commit it is")
	}
	seconds, err := strconv.ParseInt(fields[len(fields)-1], 10, 64)
	if err != nil {
		return fmt.Errorf("cmd/reframe/version.txt: %w", err)
	}
	r.date = time.Unix(seconds, 0).UTC()
	commit := fields[len(fields)-2]
	r.version = fmt.Sprintf("0.0.0+%s.%s", r.date.Format("20060102150405"), commit[:min(12, len(commit))])
	if len(fields) == 3 { // v1.2.3, or v1.2.3-4-g0123abc for the fourth commit after it
		tag, distance, behind := strings.Cut(strings.TrimPrefix(fields[0], "v"), "-")
		r.version = tag
		if behind {
			r.version += "+" + strings.ReplaceAll(distance, "-", ".")
		}
	}
	return nil
}

// documents collects the files that every platform gets. The program itself, built for this machine, writes some of them.
func (r *release) documents() error {
	share, manuals, own := filepath.Join(r.work, "share"), filepath.Join(r.work, "manuals"), filepath.Join(r.work, "own")
	if err := r.build(own, runtime.GOOS+"/"+runtime.GOARCH); err != nil {
		return err
	}
	pages := command(r.src, "make", "-s", "man", "REFRAME="+own, "MANUALS="+manuals)
	pages.Env = append(os.Environ(), r.epoch())
	completions := filepath.Join(share, "completions")
	err := errors.Join(
		os.MkdirAll(completions, 0o755),
		pages.Run(),
		command(manuals, "cp", "-r", "man1", share).Run(),
		command(manuals, "cp", "-r", "bash", "zsh", "fish", completions).Run(),
		command(r.src, "cp", "-r", "README.md", "CHANGELOG.md", "LICENSE", "doc", "examples", share).Run())
	if err != nil {
		return err
	}
	return filepath.WalkDir(share, func(path string, d os.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			path, err = filepath.Rel(share, path)
			r.share = append(r.share, path)
		}
		return err
	})
}

// epoch returns the environment variable that sets the time of files in tools (reproducible-builds.org).
func (r *release) epoch() string { return fmt.Sprintf("SOURCE_DATE_EPOCH=%d", r.date.Unix()) }

func (r *release) build(output, platform string) error {
	system, architecture, _ := strings.Cut(platform, "/")
	c := command(r.src, "go", "build", "-trimpath", "-buildvcs=false", "-ldflags=-s -w", "-o", output, "./cmd/reframe")
	c.Env = append(os.Environ(), "GOOS="+system, "GOARCH="+architecture, "CGO_ENABLED=0", "GOTOOLCHAIN="+r.toolchain,
		"GOFLAGS=", "GOAMD64=v1", "GOARM64=v8.0", "GOEXPERIMENT=", "GOWORK=off")
	return c.Run()
}

func (r *release) platform(platform string) error {
	name := fmt.Sprintf("reframe-%s-%s", r.version, strings.ReplaceAll(platform, "/", "-"))
	program, pack, suffix := "reframe", r.tar, ".tar.gz"
	if strings.HasPrefix(platform, "windows/") {
		program, pack, suffix = "reframe.exe", r.zip, ".zip"
	}
	dir := filepath.Join(r.work, name)
	built := filepath.Join(dir, program)
	if err := errors.Join(os.Mkdir(dir, 0o755), r.build(built, platform)); err != nil {
		return err
	}
	files := []file{{program, built, 0o755}}
	for _, path := range r.share {
		files = append(files, file{filepath.ToSlash(path), filepath.Join(r.work, "share", path), 0o644})
	}
	slices.SortFunc(files, func(a, b file) int { return strings.Compare(a.name, b.name) })
	if err := pack(filepath.Join(r.out, name+suffix), name, files); err != nil {
		return err
	}
	if architecture, isLinux := strings.CutPrefix(platform, "linux/"); isLinux {
		return r.packages(architecture, built)
	}
	return nil
}

// sums writes SHA256SUMS, for sha256sum --check.
func (r *release) sums() error {
	entries, err := os.ReadDir(r.out)
	if err != nil {
		return err
	}
	var text strings.Builder
	for _, e := range entries { // sorted by name
		content, err := os.ReadFile(filepath.Join(r.out, e.Name()))
		if err != nil {
			return err
		}
		fmt.Fprintf(&text, "%x  %s\n", sha256.Sum256(content), e.Name())
	}
	return os.WriteFile(filepath.Join(r.out, "SHA256SUMS"), []byte(text.String()), 0o644)
}

// command returns a command that runs in dir, with its output on standard error.
func command(dir, name string, args ...string) *exec.Cmd {
	c := exec.Command(name, args...)
	c.Dir, c.Stdout, c.Stderr = dir, os.Stderr, os.Stderr
	return c
}
