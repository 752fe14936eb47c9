package sites

import (
	"strings"

	"example.com/reframe/internal/llvm/abi"
	"example.com/reframe/internal/llvm/ir"
)

// undecorated returns the function of a module whose [abi.Decorated] symbol is symbol, or nil.
func undecorated(m *ir.Module, symbol string) *ir.Func {
	symbol = strings.TrimPrefix(symbol, "\x01") // it marks a symbol that is used unchanged
	at := strings.LastIndexByte(symbol, '@')
	if at <= 0 {
		return nil
	}
	name := symbol[:at]
	for _, name := range []string{strings.TrimSuffix(name, "@"), name, name[1:]} { // the last form removes the prefix of 32-bit Windows
		if f := m.Func(name); f != nil && abi.Decorated(f) == symbol {
			return f
		}
	}
	return nil
}
