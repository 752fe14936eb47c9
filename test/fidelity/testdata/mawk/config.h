/* As configure writes it, except for the generator of random numbers, which is the C library's random. */
#define DECL_ENVIRON 1
#define HAVE_ERRNO_H 1
#define HAVE_FCNTL_H 1
#define HAVE_FORK 1
#define HAVE_ISNAN 1
#define HAVE_MKTIME 1
#define HAVE_PIPE 1
#define HAVE_REAL_PIPES 1
#define HAVE_SIGACTION 1
#define HAVE_SIGACTION_SA_SIGACTION 1
#define HAVE_STRFTIME 1
#define HAVE_SYS_WAIT_H 1
#define HAVE_TDESTROY 1
#define HAVE_TSEARCH 1
#define HAVE_UNISTD_H 1
#define HAVE_WAIT 1
#define LOCALE 1
#define MAWK_RAND_MAX 0x7fffffffUL
#define NAME_RANDOM "srandom/random"
#define SIZE_T_STDDEF_H 1
#define SYSTEM_NAME "linux-gnu"
#define mawk_rand random
#define mawk_srand srandom
#define GCC_NORETURN
#define GCC_UNUSED
#define OPT_TRACE 0
