// Package filekind recognizes the type of a file by its first bytes, so that an error can name the verb or flag that reads it.
//
// Its main functions are [Of] and [Compressor].
//
// # Security
//
// The bytes are hostile. The package examines at most [Head] of them and prints none.
package filekind

import (
	"bytes"
	"debug/elf"
	"io"
	"os"
	"regexp"
)

// Kind is the kind of a file and the command that reads it.
type Kind struct {
	What string // the kind with its article: "an ELF core"
	Use  string // the command or flag: "reframe frames FILE reads it"; "" if no command reads it
}

// Head is the number of bytes at the beginning of a file that are examined.
const Head = 4096

const (
	useObject = "reframe maps FILE reads its stack maps, and --check checks them"
	useIR     = "--ir FILE passes it, and reframe lint FILE checks its sites"
)

// magics lists the byte sequences with which files of a kind begin (elf(5), ar(5), LLVM's BitCodeFormat, Mach-O's loader.h).
var magics = []struct {
	magic string
	kind  Kind
}{
	{"BC\xc0\xde", Kind{"LLVM bitcode", useIR}},
	{"\xde\xc0\x17\x0b", Kind{"LLVM bitcode", useIR}},
	{"!<arch>\n", Kind{"an archive", useObject}},
	{"!<thin>\n", Kind{"a thin archive", useObject}},
	{"\xcf\xfa\xed\xfe", Kind{"a Mach-O file", useObject}},
	{"\xca\xfe\xba\xbe", Kind{"a universal Mach-O file", useObject}},
	{"MZ", Kind{"a Windows program", useObject}},
}

// Names of tools that compress files.
const (
	Zstd = "zstd"
	gzip = "gzip"
)

// compressions maps the first bytes of compressed files to the tool (RFC 8878, RFC 1952, LZ4 Frame Format, The .xz File Format).
var compressions = []struct{ magic, tool string }{
	{"\x28\xb5\x2f\xfd", Zstd}, {"\x1f\x8b", gzip}, {"\x04\x22\x4d\x18", "lz4"}, {"\xfd7zXZ\x00", "xz"},
}

// Compressor returns the tool that compressed a file, or "". head is the beginning of the file: at least 6 bytes or all.
func Compressor(head []byte) string {
	for _, c := range compressions {
		if bytes.HasPrefix(head, []byte(c.magic)) {
			return c.tool
		}
	}
	return ""
}

// These match module entities at the beginning of a line (LLVM Language Reference), and file headers in a txtar archive.
var (
	entity = regexp.MustCompile(`(?m)^(; ModuleID|source_filename *=|target (datalayout|triple) *=|define [^\n]*@|declare [^\n]*@|@[-\w$."]+ *=|%[-\w$."]+ *= *type|attributes #|!\d+ *=)`)
	member = regexp.MustCompile(`(?m)^-- .+ --$`)
)

// Of returns the kind of a file. head holds its first [Head] bytes, or all of a shorter file. ok is false if the kind is unknown.
func Of(head []byte) (kind Kind, ok bool) {
	for _, m := range magics {
		if bytes.HasPrefix(head, []byte(m.magic)) {
			return m.kind, true
		}
	}
	text := bytes.TrimSpace(head)
	switch tool := Compressor(head); {
	case tool == Zstd, tool == gzip: // the output of other tools counts as binary data
		return Kind{"a file compressed by " + tool, ""}, true
	case bytes.HasPrefix(head, []byte(elf.ELFMAG)):
		return ofELF(head), true
	case len(text) == 0:
		return Kind{}, false
	case bytes.IndexByte(head, 0) >= 0:
		return Kind{"binary data", ""}, true
	case member.Match(text):
		return Kind{"a replay script", "reframe replay FILE runs it"}, true
	case entity.Match(text):
		return Kind{"IR", useIR}, true
	case text[0] == '{' || text[0] == '[':
		return Kind{"JSON", "--layout FILE passes a layout"}, true
	}
	return Kind{}, false
}

// ofELF returns the kind of an ELF file from its type.
func ofELF(head []byte) Kind {
	const at = elf.EI_NIDENT // the offset of e_type, 2 bytes
	if len(head) < at+2 {
		return Kind{"a truncated ELF file", ""}
	}
	kind := elf.Type(head[at]) | elf.Type(head[at+1])<<8
	if elf.Data(head[elf.EI_DATA]) == elf.ELFDATA2MSB {
		kind = elf.Type(head[at])<<8 | elf.Type(head[at+1])
	}
	switch kind {
	case elf.ET_CORE:
		return Kind{"a core", "reframe frames FILE reads it"}
	case elf.ET_REL:
		return Kind{"an ELF object", useObject}
	}
	return Kind{"an ELF program or library", useObject}
}

// OfFile returns the kind of a regular file, as [Of] does. It does not open other files, such as devices.
func OfFile(path string) (kind Kind, ok bool) {
	if info, err := os.Stat(path); err != nil || !info.Mode().IsRegular() {
		return Kind{}, false
	}
	f, err := os.Open(path)
	if err != nil {
		return Kind{}, false
	}
	defer f.Close()
	head, err := io.ReadAll(io.LimitReader(f, Head))
	if err != nil {
		return Kind{}, false
	}
	return Of(head)
}

// Instead returns an error text: this kind was found where another kind was wanted, and the command that reads this kind.
func (k Kind) Instead(wanted string) string {
	text := "expected " + wanted + ", got " + k.What
	if k.Use != "" {
		text += "; " + k.Use
	}
	return text
}
