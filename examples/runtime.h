// Functions that the code compiled by host.c and host.cpp calls.
#include "leave.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { N = 1000, STOP = 26, LIMIT = 5000 };

extern int stops;                    // 0: compiled code does not stop
extern int64_t (*baseline)(int64_t); // the function that continues when optimized code exits

int64_t square(int64_t i);
void tick(int64_t i);
_Noreturn void __llvm_deoptimize(int64_t reason);

#ifdef __cplusplus
}
#endif
