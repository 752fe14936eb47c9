/* The package's Makefile has makescan.c write this table down. */
#define main without_main
#include "makescan.c"

__attribute__((constructor)) static void fill(void) { scan_init(); }
