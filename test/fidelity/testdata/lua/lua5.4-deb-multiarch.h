/* Debian's rules make a file of this name for src/luaconf.h. It is where require looks for libraries. */
#define DEB_HOST_MULTIARCH "x86_64-linux-gnu"
