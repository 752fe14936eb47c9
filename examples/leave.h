// The way out of optimized code; leave.S says why.
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#define _Noreturn [[noreturn]]
#endif

int64_t call_optimized(int64_t (*f)(int64_t), int64_t a); // f(a), unless it is left
_Noreturn void leave_optimized(int64_t value);            // from below f: has call_optimized return value

#ifdef __cplusplus
}
#endif
