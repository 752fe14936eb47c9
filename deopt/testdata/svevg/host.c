// @f (f.ll) keeps a vector of SVE on its stack while it calls stop.
#include <stdlib.h>

long entry(void);

void stop(void) { abort(); }

int main(void) { return entry(); }
