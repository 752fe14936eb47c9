package object

// chainImports holds the imports that chained fixups refer to by number (mach-o/fixup-chains.h, struct dyld_chained_import and its variants).
type chainImports struct {
	at, count, kind uint64
	names           *symbolTable
	compressed      bool
}

func (i *chainImports) read(w *chainWalk) {
	i.at, i.count, i.kind = w.words.at(8, 4), w.words.at(16, 4), w.words.at(20, 4)
	i.compressed = w.words.at(24, 4) != 0
	if symbols := w.words.at(12, 4); symbols < uint64(len(w.words.b)) {
		i.names = &symbolTable{strings: w.words.b[symbols:]}
	}
}

// bind sets the symbol that a place is bound to in r, and returns its address if the image itself defines it. An image also imports its own definitions if
// other images may replace them.
func (i *chainImports) bind(w *chainWalk, l chainLink, r *Relocation) (uint64, error) {
	fail := func(format string, args ...any) (uint64, error) { return 0, w.fail(w.first+r.Offset, format, args...) }
	if l.ordinal >= i.count {
		return fail("import %d of %d", l.ordinal, i.count)
	}
	var name uint64
	var library int
	switch i.kind {
	case 1, 2: // DYLD_CHAINED_IMPORT, and its variant with a 4-byte addend
		size := 4 * i.kind
		v := w.words.at(i.at+size*l.ordinal, 4)
		name, library = v>>9, int(int8(v))
		if i.kind == 2 {
			r.Addend += int64(int32(w.words.at(i.at+size*l.ordinal+4, 4)))
		}
	case 3: // the variant with an 8-byte addend
		v := w.words.at(i.at+16*l.ordinal, 8)
		name, library = v>>32, int(int16(v))
		r.Addend += int64(w.words.at(i.at+16*l.ordinal+8, 8))
	default:
		return fail("imports of format %d are not supported", i.kind)
	}
	switch {
	case w.words.outside:
		return 0, w.outside()
	case i.compressed:
		return fail("the names of imports are compressed")
	case i.names == nil || name >= uint64(len(i.names.strings)):
		return fail("the name of import %d lies outside of the names", l.ordinal)
	}
	r.table, r.symbol = i.names, rawSymbol{name: uint32(name), section: undefined}
	// A positive number is that of another image. 0 is the image itself. Negative numbers are searches that may find the image's own definition.
	if library > 0 {
		return 0, nil
	}
	sym, ok := w.f.export(nameAt(i.names.strings, uint32(name)))
	if !ok {
		return 0, nil
	}
	r.Defined = true
	return sym.value + uint64(r.Addend), nil
}
