package stackmap

// FunctionPos returns the place of the address of f, one of m.Functions, in the section.
func (m *Map) FunctionPos(f *Function) int64 {
	return m.Offset + headerSize + int64(f.row)*int64(m.layout.functionSize)
}

// Row returns which of the functions of its blob f is, from 0, whatever was deleted from
// [Map.Functions].
func (f *Function) Row() int { return int(f.row) }
