/* As configure writes it. */
#define CONFIG_TCCDIR "/usr/local/lib/tcc"
#define TCC_VERSION "0.9.27"
#define GCC_MAJOR 12
#define GCC_MINOR 2
#define CONFIG_TRIPLET "x86_64-linux-gnu"
/* There is one thread, and the interpreter has no semaphores. */
#include <semaphore.h>
#define sem_init(sem, shared, n) 0
#define sem_wait(sem) 0
#define sem_post(sem) 0
