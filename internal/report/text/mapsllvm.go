package text

import (
	"bufio"
	"fmt"
	"io"
	"strconv"

	"example.com/reframe/deopt/stackmap"
	"example.com/reframe/internal/static/maps"
)

// PrintLLVM prints stack maps in the format of llvm-readobj --stackmap. It prints all maps of a section; llvm-readobj prints only the first. It
// prints the section of the image without relocation, and calls unreadable for each section that it cannot read.
func PrintLLVM(w io.Writer, m *maps.Maps, unreadable func(error)) error {
	out := bufio.NewWriterSize(w, 1<<16)
	var b []byte
	for _, i := range m.Images {
		section, err := i.Unrelocated()
		if err != nil {
			unreadable(err)
		}
		if section == nil {
			continue
		}
		for _, m := range section.Maps {
			b = appendLLVM(b[:0], m, out)
			out.Write(b)
		}
	}
	return out.Flush()
}

// appendLLVM appends one map to b. It writes b to w when b has become large.
func appendLLVM(b []byte, m *stackmap.Map, w io.Writer) []byte {
	b = fmt.Appendf(b, "LLVM StackMap Version: %d\nNum Functions: %d\n", m.Version, len(m.Functions))
	for n := range m.Functions {
		f := &m.Functions[n]
		b = append(b, "  Function address: "...)
		b = strconv.AppendUint(b, uint64(f.Addr), 10)
		b = append(b, ", stack size: "...)
		b = strconv.AppendUint(b, f.StackSize, 10)
		b = append(b, ", callsite record count: "...)
		b = strconv.AppendInt(b, int64(f.Len()), 10)
		b = append(b, '\n')
	}
	b = fmt.Appendf(b, "Num Constants: %d\n", m.NumConstants())
	for n := range m.NumConstants() {
		b = fmt.Appendf(b, "  #%d: %d\n", n+1, m.ConstantAt(n))
	}
	b = fmt.Appendf(b, "Num Records: %d\n", m.Len())
	all := func(f *stackmap.Function) {
		for rec := range m.Records(f) {
			b = appendLLVMRecord(b, m, rec)
			w.Write(b)
			b = b[:0]
		}
	}
	for n := range m.Functions {
		all(&m.Functions[n])
	}
	all(nil)
	return b
}

func appendLLVMRecord(b []byte, m *stackmap.Map, rec *stackmap.Record) []byte {
	b = append(b, "  Record ID: "...)
	b = strconv.AppendUint(b, uint64(rec.ID), 10)
	b = append(b, ", instruction offset: "...)
	b = strconv.AppendUint(b, uint64(rec.Offset), 10)
	b = append(b, "\n    "...)
	b = strconv.AppendInt(b, int64(len(rec.Locations)), 10)
	b = append(b, " locations:\n"...)
	for n, l := range rec.Locations {
		b = append(b, "      #"...)
		b = strconv.AppendInt(b, int64(n+1), 10)
		b = append(b, ": "...)
		b = append(b, l.Kind.String()...)
		switch l.Kind {
		case stackmap.Register:
			b = append(b, " R#"...)
			b = strconv.AppendUint(b, uint64(l.Reg), 10)
		case stackmap.Direct:
			b = append(b, " R#"...)
			b = strconv.AppendUint(b, uint64(l.Reg), 10)
			b = append(b, " + "...)
			b = strconv.AppendInt(b, int64(l.Offset), 10)
		case stackmap.Indirect:
			b = append(b, " [R#"...)
			b = strconv.AppendUint(b, uint64(l.Reg), 10)
			b = append(b, " + "...)
			b = strconv.AppendInt(b, int64(l.Offset), 10)
			b = append(b, ']')
		case stackmap.Constant:
			b = append(b, ' ')
			b = strconv.AppendUint(b, uint64(uint32(l.Offset)), 10)
		case stackmap.ConstantIndex:
			b = append(b, " #"...)
			b = strconv.AppendUint(b, uint64(uint32(l.Offset)), 10)
			b = append(b, " ("...)
			if v, err := m.Constant(l); err == nil {
				b = strconv.AppendUint(b, v, 10)
			}
			b = append(b, ')')
		}
		b = append(b, ", size: "...)
		b = strconv.AppendUint(b, uint64(l.Size), 10)
		b = append(b, '\n')
	}
	b = append(b, "    "...)
	b = strconv.AppendInt(b, int64(len(rec.LiveOuts)), 10)
	b = append(b, " live-outs: [ "...)
	for _, l := range rec.LiveOuts {
		b = strconv.AppendUint(append(b, "R#"...), uint64(l.Reg), 10)
		b = strconv.AppendUint(append(b, " ("...), uint64(l.Size), 10)
		b = append(b, "-bytes) "...)
	}
	return append(b, "]\n"...)
}
