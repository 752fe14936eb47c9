/* cmark's cmake makes it: a program that has the library inside exports nothing. */
#define CMARK_EXPORT
