/* deflate's slide_hash compares uninitialized entries of its hash chains, and never uses the result
   (its comment says so). LLVM has no such latitude: a branch on an undefined value is undefined behaviour (LangRef, "br").
   With this header before each source the memory is cleared, and all that zlib does is defined. */
#include <stdlib.h>
#define malloc(size) calloc(1, size)
