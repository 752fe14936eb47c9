// The test program's random numbers begin with the time.
#include <time.h>
#define time(where) ((time_t)1)
