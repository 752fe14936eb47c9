/* What cmark's cmake makes of config.h.in for clang on Linux. */
#include <stdbool.h>
#define CMARK_ATTRIBUTE(list) __attribute__(list)
#define CMARK_INLINE inline
#define HAVE_STDBOOL_H
#define HAVE___BUILTIN_EXPECT
#define HAVE___ATTRIBUTE__
