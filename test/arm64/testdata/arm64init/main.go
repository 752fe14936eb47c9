// Command arm64init is the init process of the virtual machine that the tests boot. It executes the commands of /script, one per line:
//
//	start NAME [ARG…]        starts /NAME
//	await NAME               waits until the process that start has created of /NAME waits in pause
//	end OUT NAME             waits until the process of /NAME has ended, and kills it after a minute
//	run OUT NAME [ARG…]      runs /NAME; @PROGRAM in an argument is the number of the process that start has created of it
//	kill OUT SIGNAL MS FILE NAME [ARG…]
//	                         runs /NAME, and sends it the signal MS milliseconds after it has written to FILE
//
// run, end and kill store the output of the process in /out/OUT.stdout and /out/OUT.stderr, and its exit status in /out/OUT.code. After the
// last command, all of /out is written to the console, as a compressed tar archive in base64 between two lines, and the machine is switched off.
package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"fmt"
	"os"
	"os/exec"
	"strconv"
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
	started := map[string]*program{}
	for line := range strings.Lines(string(script)) {
		words := strings.Fields(line)
		var err error
		switch words[0] {
		case "start":
			p := newProgram(words[1:])
			started[words[1]] = p
			err = p.cmd.Start()
		case "await":
			err = started[words[1]].await()
		case "end":
			p := started[words[2]]
			late := time.AfterFunc(endLimit, func() { _ = p.cmd.Process.Kill() })
			err = p.end(words[1])
			late.Stop()
		case "run", "kill":
			for i, w := range words {
				if p := started[strings.TrimPrefix(w, "@")]; p != nil && w[0] == '@' {
					words[i] = fmt.Sprint(p.cmd.Process.Pid)
				}
			}
			first := map[string]int{"run": 2, "kill": 5}[words[0]]
			p := newProgram(words[first:])
			if err = p.cmd.Start(); err == nil && words[0] == "kill" {
				err = p.kill(words[2], words[3], words[4])
			}
			if err == nil {
				err = p.end(words[1])
			}
		}
		if err != nil {
			return err
		}
	}
	return send()
}

// endLimit ends a program that hangs.
const endLimit = 1 * time.Minute

// program is a started program, with its output.
type program struct {
	cmd            *exec.Cmd
	stdout, stderr bytes.Buffer
}

func newProgram(words []string) *program {
	p := &program{cmd: exec.Command("/"+words[0], words[1:]...)}
	p.cmd.Stdout, p.cmd.Stderr = &p.stdout, &p.stderr
	return p
}

// await waits until the first thread is in ppoll, which implements pause in C libraries for arm64.
func (p *program) await() error {
	const ppoll = "73 0x0 0x0 "
	for range 2000 {
		at, err := os.ReadFile(fmt.Sprintf("/proc/%d/syscall", p.cmd.Process.Pid))
		if err != nil {
			return err
		}
		if strings.HasPrefix(string(at), ppoll) {
			return nil
		}
		time.Sleep(10 * time.Millisecond)
	}
	return fmt.Errorf("%s does not come to wait", p.cmd.Path)
}

// kill waits until the file is not empty, then ms milliseconds, and sends the signal.
func (p *program) kill(signal, ms, file string) error {
	number, err := strconv.Atoi(signal)
	if err != nil {
		return err
	}
	later, err := strconv.Atoi(ms)
	if err != nil {
		return err
	}
	for range 1000 {
		if info, err := os.Stat(file); err == nil && info.Size() > 0 {
			time.Sleep(time.Duration(later) * time.Millisecond)
			return p.cmd.Process.Signal(syscall.Signal(number))
		}
		time.Sleep(10 * time.Millisecond)
	}
	_ = p.cmd.Process.Kill()
	_ = p.cmd.Wait()
	return fmt.Errorf("%s does not write to %s: %s", p.cmd.Path, file, &p.stderr)
}

// end waits until the program has ended, and stores its output.
func (p *program) end(name string) error {
	if err := p.cmd.Wait(); p.cmd.ProcessState == nil {
		return err
	}
	for suffix, b := range map[string][]byte{"stdout": p.stdout.Bytes(), "stderr": p.stderr.Bytes(), "code": fmt.Append(nil, p.cmd.ProcessState.ExitCode())} {
		if err := os.WriteFile("/out/"+name+"."+suffix, b, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// send writes the results to the console.
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
