package ir

import (
	"strings"
)

// LineText returns a line of the module's text, from 1 on, without the white space
// around it; "" where there is no such line.
func (m *Module) LineText(line int) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.lines == nil {
		m.lines = []int{0}
		for k := 0; k < len(m.src); k++ {
			if m.src[k] == '\n' {
				m.lines = append(m.lines, k+1)
			}
		}
	}
	if line < 1 || line > len(m.lines) {
		return ""
	}
	text := m.src[m.lines[line-1]:]
	if line < len(m.lines) {
		text = m.src[m.lines[line-1]:m.lines[line]]
	}
	return strings.ToValidUTF8(strings.TrimSpace(text), "?")
}

// Text is the module's text.
func (m *Module) Text() string { return m.src }

// Size is how many bytes the module's text has.
func (m *Module) Size() int { return len(m.src) }
