package dap

import (
	"encoding/base64"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/google/go-dap"

	"example.com/reframe/deopt/frame"
	"example.com/reframe/internal/machine"
	"example.com/reframe/internal/report/explain"
)

// These bound the bytes and the instructions of one response.
const (
	maxMemory       = 1 << 20
	maxInstructions = 10_000
)

// address parses a reference to memory, a hexadecimal address, and adds offset.
func address(reference string, offset int) (machine.Addr, error) {
	v, err := strconv.ParseUint(strings.TrimPrefix(reference, "0x"), 16, 64)
	if err != nil || !strings.HasPrefix(reference, "0x") {
		return 0, fmt.Errorf("memoryReference %.40q: expected an address, such as 0x7f0012340000", reference)
	}
	return machine.Addr(v + uint64(offset)), nil
}

func (c *conn) readMemory(r *dap.ReadMemoryRequest) error {
	a := r.Arguments
	at, err := address(a.MemoryReference, a.Offset)
	if err != nil {
		return err
	}
	if a.Count < 0 || a.Count > maxMemory {
		return fmt.Errorf("count %d: must be from 0 to %d bytes", a.Count, maxMemory)
	}
	data, _ := machine.ReadSome(c.target.Session, at, make([]byte, a.Count)) // ignore the error: the response has the number of unreadable bytes
	c.respond(&r.Request, &dap.ReadMemoryResponse{Body: dap.ReadMemoryResponseBody{Address: string(frame.HexOf(at)),
		Data: base64.StdEncoding.EncodeToString(data), UnreadableBytes: a.Count - len(data)}})
	return nil
}

func (c *conn) disassemble(r *dap.DisassembleRequest) error {
	a := r.Arguments
	at, err := address(a.MemoryReference, a.Offset)
	if err != nil {
		return err
	}
	if a.InstructionCount < 0 || a.InstructionCount > maxInstructions || a.InstructionOffset < -maxInstructions || a.InstructionOffset > maxInstructions {
		return fmt.Errorf("instructionOffset %d and instructionCount %d: must be at most %d", a.InstructionOffset, a.InstructionCount, maxInstructions)
	}
	d, err := c.target.Session.Disassembly(at, max(-a.InstructionOffset, 0), max(a.InstructionOffset+a.InstructionCount, 1))
	if err != nil {
		return err
	}
	here := slices.IndexFunc(d.Instructions, func(i explain.Instruction) bool { return i.Here })
	if here < 0 {
		return fmt.Errorf("%v: %s", at, d.Why)
	}
	body := dap.DisassembleResponseBody{Instructions: []dap.DisassembledInstruction{}}
	for k := here + a.InstructionOffset; k < here+a.InstructionOffset+a.InstructionCount; k++ {
		switch {
		case k < 0: // pad the response, which must have the requested number of instructions
			first, _ := address(string(d.Instructions[0].Address), 0)
			body.Instructions = append(body.Instructions, unknown(first+machine.Addr(k)))
		case k >= len(d.Instructions):
			last := d.Instructions[len(d.Instructions)-1]
			behind, _ := address(string(last.Address), len(strings.Fields(last.Bytes)))
			body.Instructions = append(body.Instructions, unknown(behind+machine.Addr(k-len(d.Instructions))))
		default:
			body.Instructions = append(body.Instructions, instruction(&d.Instructions[k]))
		}
	}
	c.respond(&r.Request, &dap.DisassembleResponse{Body: body})
	return nil
}

// unknown returns the entry for an address without a known instruction.
func unknown(at machine.Addr) dap.DisassembledInstruction {
	return dap.DisassembledInstruction{Address: string(frame.HexOf(at)), Instruction: "(not known)"}
}

func instruction(i *explain.Instruction) dap.DisassembledInstruction {
	text := i.Text
	if len(i.Notes) > 0 {
		text += "  ; " + strings.Join(i.Notes, "; ")
	}
	return dap.DisassembledInstruction{Address: string(i.Address), InstructionBytes: i.Bytes, Instruction: text}
}
