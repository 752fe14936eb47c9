/* Debian's rules make a file of this name for src/luaconf.h. It has the paths that require searches. */
#define DEB_HOST_MULTIARCH "x86_64-linux-gnu"
