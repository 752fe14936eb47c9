// Package html draws a picture of an exit: one HTML page in which the machine stack, the registers, the bytes of the record, the IR, the frames of
// a virtual machine and the code around the pc are side by side, and a selected value is highlighted in all of them.
//
// Its main type is [Page]. [Of] makes one of an explanation while the target is stopped, and [Page.Write] writes it; a [Book] holds the pages of
// differences that a verification found, and its index.
//
// # Security
//
// All names and bytes are hostile. They become text only through html/template, characters that do not print become U+FFFD, and the content is
// bounded, in number and finally by the size of the page. A page's own policy lets it run only the one script and use only the one style sheet of
// this package, by their hashes, and load nothing.
package html
