/* The package's Makefile generates this table with makescan.c. */
#define main without_main
#include "makescan.c"

__attribute__((constructor)) static void fill(void) { scan_init(); }
