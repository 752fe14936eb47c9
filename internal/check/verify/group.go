package verify

import (
	"fmt"
	"strings"
)

// Group holds differences of exits that are equal, or that came later in the same activation. Only the first is reported in full.
type Group struct {
	First uint64 `json:"first"` // number of the first exit
	Count uint64 `json:"count"`
	Text  string `json:"text"` // the first difference
}

// maxGroups bounds the groups; later differences are reported one by one.
const maxGroups = 1 << 12

// suspect records a difference for the activation of an exit, and for the activations that wait for it, because it is the likely cause of their later
// differences.
func (v *verifier) suspect(p *prediction, key string) {
	for c := p.call; c != nil; c = c.outer {
		if run := v.entryRunOf(c); run != nil && run.fault == "" {
			run.fault = key
		}
	}
}

// key returns a key that is the same for equal differences, and the text of the difference.
func (v *Verified) key() (key, text string) {
	f := v.Exit.Frame
	at := fmt.Sprintf("record %d of %s", f.Record.ID, f.Function)
	switch {
	case v.VMState.different():
		key, text = v.VMState.Differences[0].key(), v.VMState.Differences[0].String()
	case v.Interpreter.Failed != "" || v.Native.Failed != "":
		text = v.Interpreter.Failed + v.Native.Failed
		key = at + "|failure|" + kindOfFailure(v.Interpreter.Failed) + "|" + kindOfFailure(v.Native.Failed)
	case len(v.Result) > 0 && !v.Result[0].Same:
		key, text = at+"|result", "the result from "+at
	default:
		key, text = at+"|memory", "memory from "+at
	}
	if v.run != nil && v.run.fault != "" {
		key = v.run.fault
	}
	return key, text
}

// kindOfFailure returns the beginning of the reason of a failure, such as "it raised SIGSEGV", which is the same for equal failures. Addresses and values
// of the activation follow it.
func kindOfFailure(failed string) string {
	if n := strings.IndexAny(failed, ",:"); n >= 0 {
		return failed[:n]
	}
	return failed
}

// group counts a difference found with the user's own interpreter. For a later difference of a group it records the number of the first one.
func (v *verifier) group(out *Verified) {
	if !out.With || out.Status != Different || out.Exit.Frame == nil || out.Exit.Frame.Record == nil {
		return
	}
	key, text := out.key()
	s := &v.summary
	if v.groups == nil {
		v.groups = map[string]int{}
	}
	if n, known := v.groups[key]; known {
		s.Groups[n].Count++
		out.SameAs = s.Groups[n].First
	} else if len(s.Groups) < maxGroups {
		v.groups[key] = len(s.Groups)
		s.Groups = append(s.Groups, Group{out.Number, 1, text})
	}
}
