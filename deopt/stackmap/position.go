package stackmap

// FunctionPos returns the position in the section of the address field of f, one of m.Functions.
func (m *Map) FunctionPos(f *Function) int64 {
	return m.Offset + headerSize + int64(f.row)*int64(m.layout.functionSize)
}

// Row returns the index of f in the function table of its blob. Deleting functions from [Map.Functions] does not change it.
func (f *Function) Row() int { return int(f.row) }
