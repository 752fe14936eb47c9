// Package page draws a picture of an exit: one page of HTML in which the machine stack, the registers, the bytes of the record, the IR, the frames
// of a virtual machine and the code around the pc stand beside each other, and a value is lit in all of them at once.
//
// Its main type is [Page]. [Of] makes one of an explanation while the target is held, and [Page.Write] writes it; a [Book] holds the pages of
// differences that a verification found, and its index.
//
// # Security
//
// All names and bytes are hostile. They become text by html/template alone, characters that do not print become U+FFFD, and what is shown is
// bounded, in number and at last by the size of the page. A page's own policy lets it run the one script and use the one style sheet that are
// in this package, by their hashes, and load nothing.
package page
