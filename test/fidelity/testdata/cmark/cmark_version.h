/* cmark's cmake makes it, with the package's version; no output but --version has it. */
#define CMARK_VERSION 0
#define CMARK_VERSION_STRING "0"
