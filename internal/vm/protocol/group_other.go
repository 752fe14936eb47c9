//go:build !unix

package protocol

import "os/exec"

func grouped(*exec.Cmd) {}

func endGroup(c *exec.Cmd) { _ = c.Process.Kill() }
