// Leaving optimized code: see leave.S.
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#define _Noreturn [[noreturn]]
#endif

int64_t call_optimized(int64_t (*f)(int64_t), int64_t a); // f(a), unless f is abandoned
_Noreturn void leave_optimized(int64_t value);            // called by f or its callees: makes call_optimized return value

#ifdef __cplusplus
}
#endif
