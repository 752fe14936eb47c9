// Command arm64init is the first process of a machine that the tests boot. /script says what it does, a line each:
//
//	start NAME [ARG…]        starts /NAME and goes on when it waits in pause
//	run OUT NAME [ARG…]      runs /NAME; @PROGRAM in an argument is the number of the process that was started of it
//
// What run prints is /out/OUT.stdout and /out/OUT.stderr, with the exit status in /out/OUT.code. In the end all of /out
// goes to the console, as a tar archive in base64 between two lines, and the machine is switched off.
package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"
)

func main() {
	err := boot()
	if err != nil {
		fmt.Println("failed:", err)
	}
	_ = syscall.Reboot(syscall.LINUX_REBOOT_CMD_POWER_OFF)
}

func boot() error {
	if err := syscall.Mount("proc", "/proc", "proc", 0, ""); err != nil {
		return err
	}
	script, err := os.ReadFile("/script")
	if err != nil {
		return err
	}
	started := map[string]string{}
	for line := range strings.Lines(string(script)) {
		words := strings.Fields(line)
		switch words[0] {
		case "start":
			pid, err := start(words[1:])
			if err != nil {
				return err
			}
			started["@"+words[1]] = fmt.Sprint(pid)
		case "run":
			for i, w := range words {
				if pid, ok := started[w]; ok {
					words[i] = pid
				}
			}
			if err := run(words[1], words[2:]); err != nil {
				return err
			}
		}
	}
	return send()
}

// start starts a program and waits until its first thread is in ppoll, by which C libraries of arm64 pause.
func start(words []string) (int, error) {
	c := exec.Command("/"+words[0], words[1:]...)
	if err := c.Start(); err != nil {
		return 0, err
	}
	const ppoll = "73 0x0 0x0 "
	for range 2000 {
		at, err := os.ReadFile(fmt.Sprintf("/proc/%d/syscall", c.Process.Pid))
		if err != nil {
			return 0, err
		}
		if strings.HasPrefix(string(at), ppoll) {
			return c.Process.Pid, nil
		}
		time.Sleep(10 * time.Millisecond)
	}
	return 0, fmt.Errorf("%s does not come to wait", words[0])
}

func run(name string, words []string) error {
	c := exec.Command("/"+words[0], words[1:]...)
	var stdout, stderr bytes.Buffer
	c.Stdout, c.Stderr = &stdout, &stderr
	if err := c.Run(); c.ProcessState == nil {
		return err
	}
	for suffix, b := range map[string][]byte{"stdout": stdout.Bytes(), "stderr": stderr.Bytes(), "code": fmt.Append(nil, c.ProcessState.ExitCode())} {
		if err := os.WriteFile("/out/"+name+"."+suffix, b, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// send writes what was made to the console.
func send() error {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	w := tar.NewWriter(z)
	if err := w.AddFS(os.DirFS("/out")); err != nil {
		return err
	}
	if err := w.Close(); err != nil {
		return err
	}
	if err := z.Close(); err != nil {
		return err
	}
	text := base64.StdEncoding.EncodeToString(b.Bytes())
	fmt.Println("-----BEGIN-----")
	for len(text) > 0 {
		n := min(len(text), 76)
		fmt.Println(text[:n])
		text = text[n:]
	}
	fmt.Println("-----END-----")
	return nil
}
