package stackmap

// FunctionPos returns where the address of f, one of m.Functions, stands in the section.
func (m *Map) FunctionPos(f *Function) int64 {
	return m.Offset + headerSize + int64(f.row)*int64(m.layout.functionSize)
}
