// Package html draws a picture of an exit: one HTML page in which the machine stack, the registers, the bytes of the record, the IR, the frames of
// a virtual machine and the code around the pc are side by side, and a selected value is highlighted in all of them.
//
// Its main type is [Page]. [Of] makes one of an explanation while the target is stopped, and [Page.Write] writes it; a [Book] holds the pages of
// differences that a verification found, and its index.
//
// # Security
//
// All names and bytes are hostile. html/template escapes them, and unprintable characters become U+FFFD. The parts of a page are bounded in number,
// and a page in size. The content security policy of a page allows only this package's script and style sheet, by their hashes, and loads nothing.
package html
