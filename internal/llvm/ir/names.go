package ir

import (
	"strings"
)

// Names are stored without their sigil. An unnamed value has a number, and its Name is that number in decimal. %"7" is a name and not a number; it
// keeps its quotation marks, so that it differs from the number %7.

// quoteName returns a name as LLVM prints it after its sigil: bare if possible, otherwise in quotation marks with special bytes as \XX.
func quoteName(name string) string {
	if isNumber(name) || isQuotedNumber(name) {
		return name
	}
	bare := name != "" && (name[0] < '0' || name[0] > '9')
	for i := 0; i < len(name) && bare; i++ {
		bare = bareInPrint(name[i])
	}
	if bare {
		return name
	}
	const digits = "0123456789ABCDEF"
	var b strings.Builder
	b.WriteByte('"')
	for i := range len(name) {
		c := name[i]
		if c < ' ' || c > '~' || c == '"' || c == '\\' {
			b.WriteByte('\\')
			b.WriteByte(digits[c>>4])
			b.WriteByte(digits[c&15])
			continue
		}
		b.WriteByte(c)
	}
	b.WriteByte('"')
	return b.String()
}

// bareInPrint reports whether LLVM prints a character of a name without quotation marks. LLVM also accepts an unquoted $.
func bareInPrint(c byte) bool {
	return isKeywordChar(c) || c == '-' || c == '.'
}

func isNumber(name string) bool {
	for i := range len(name) {
		if !isDigit(name[i]) {
			return false
		}
	}
	return name != ""
}

func isQuotedNumber(name string) bool {
	return len(name) > 2 && name[0] == '"' && name[len(name)-1] == '"' && isNumber(name[1:len(name)-1])
}

// unescape replaces \\ and \XX in quoted text. It keeps any other backslash, as LLVM does.
func unescape(s string) string {
	if strings.IndexByte(s, '\\') < 0 {
		return s
	}
	b := make([]byte, 0, len(s))
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+1 < len(s) && s[i+1] == '\\' {
			i++
		} else if s[i] == '\\' && i+2 < len(s) && isHex(s[i+1]) && isHex(s[i+2]) {
			b = append(b, hexValue(s[i+1])<<4|hexValue(s[i+2]))
			i += 2
			continue
		}
		b = append(b, s[i])
	}
	return string(b)
}

// These are classes of characters (LangRef, "Identifiers"; LLVM's lexer for metadata).
const (
	digit        = 1 << iota
	hexDigit     // 0-9a-fA-F
	keywordChar  // characters of keywords, types and opcodes
	nameChar     // characters of unquoted names and labels
	metadataChar // characters of metadata names
)

var classes = func() (classes [256]uint8) {
	set := func(class uint8, chars string) {
		for _, c := range []byte(chars) {
			classes[c] |= class
		}
	}
	const digits, hexLetters = "0123456789", "abcdefABCDEF"
	set(digit|hexDigit|keywordChar|nameChar|metadataChar, digits)
	set(hexDigit, hexLetters)
	set(keywordChar|nameChar|metadataChar, hexLetters+"ghijklmnopqrstuvwxyzGHIJKLMNOPQRSTUVWXYZ_")
	set(nameChar|metadataChar, "-.$")
	set(metadataChar, `\`)
	return classes
}()

func isDigit(c byte) bool { return classes[c]&digit != 0 }

func isHex(c byte) bool { return classes[c]&hexDigit != 0 }

func isKeywordChar(c byte) bool { return classes[c]&keywordChar != 0 }

func isNameChar(c byte) bool { return classes[c]&nameChar != 0 }

func hexValue(c byte) byte {
	if isDigit(c) {
		return c - '0'
	}
	return c | 0x20 - 'a' + 10
}
