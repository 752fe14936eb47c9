// A JIT host without a JIT: it loads an object of llc, registers it with the GDB JIT interface, calls the object's `int64_t
// entry(int64_t)` from each of THREADS threads for ROUNDS rounds, prints "checksum" and a number computed from all results, and
// exits with status 0.
//
//	obj_host [-w] [-g] [-u K] [-c N] [-m WHAT] OBJECT [THREADS [ROUNDS]]
//
//	-w       print "ready" and wait for a byte, or the end, of standard input before any call
//	-g       raise many signals: a timer, a SIGUSR1 and a read of a null pointer by each thread. Prints the number of handled ones
//	-u K     after each K rounds end all threads, unregister and unmap the object, and load it again
//	-c N     meanwhile start and join N more threads, one after the other, that call entry once each
//	-m WHAT  halfway the first thread acts: fork (the child finishes that thread's rounds and prints its
//	         own checksum), spawn (/bin/true, which shares memory until it is another program), exec (this program
//	         from the start, now without -m), exit (with status 3, while the others run), abort
//
// In round r thread t calls entry(r * THREADS + t), both from 0; thread n of -c calls entry(-1 - n).
//
// An object may leave optimized code through @llvm.experimental.deoptimize: it calls the function that may do so by
// call_optimized(f, a, b, c), and defines `int64_t osr(int32_t reason, int64_t, int64_t, int64_t, int64_t)`, its baseline code,
// which is called with the arguments of the deoptimize call. A function called by call_optimized that faults
// returns FAULTED.
#define _GNU_SOURCE
#include "checksum.h"
#include "obj_load.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdatomic.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <ucontext.h>

enum { FAULTED = 1000003 };

// leave_optimized(value) abandons the innermost function that call_optimized has called in this thread, and
// whatever that called, and makes its call_optimized return value. The stack pointer of the call before is kept on the
// stack, where the alignment of the ABI leaves room. So are the callee-saved registers, because the abandoned function does not
// restore those that it saved. Both paths meet at the return address of the call.
_Noreturn void leave_optimized(int64_t value);
int64_t call_optimized(void *f, int64_t a, int64_t b, int64_t c);
__thread uint64_t optimized_rsp;
__asm__(".pushsection .text\n"
        ".globl call_optimized, leave_optimized\n"
        ".type call_optimized, @function\n"
        ".type leave_optimized, @function\n"
        "call_optimized:\n"
        "  .cfi_startproc\n"
        "  push %rbp\n  .cfi_adjust_cfa_offset 8\n  .cfi_rel_offset %rbp, 0\n"
        "  push %rbx\n  .cfi_adjust_cfa_offset 8\n  .cfi_rel_offset %rbx, 0\n"
        "  push %r12\n  .cfi_adjust_cfa_offset 8\n  .cfi_rel_offset %r12, 0\n"
        "  push %r13\n  .cfi_adjust_cfa_offset 8\n  .cfi_rel_offset %r13, 0\n"
        "  push %r14\n  .cfi_adjust_cfa_offset 8\n  .cfi_rel_offset %r14, 0\n"
        "  push %r15\n  .cfi_adjust_cfa_offset 8\n  .cfi_rel_offset %r15, 0\n"
        "  push %fs:optimized_rsp@tpoff\n  .cfi_adjust_cfa_offset 8\n"
        "  mov %rsp, %fs:optimized_rsp@tpoff\n"
        "  mov %rdi, %rax\n"
        "  mov %rsi, %rdi\n"
        "  mov %rdx, %rsi\n"
        "  mov %rcx, %rdx\n"
        "  call *%rax\n"
        ".Lreturn:\n"
        "  pop %fs:optimized_rsp@tpoff\n  .cfi_adjust_cfa_offset -8\n"
        "  pop %r15\n  .cfi_adjust_cfa_offset -8\n  .cfi_restore %r15\n"
        "  pop %r14\n  .cfi_adjust_cfa_offset -8\n  .cfi_restore %r14\n"
        "  pop %r13\n  .cfi_adjust_cfa_offset -8\n  .cfi_restore %r13\n"
        "  pop %r12\n  .cfi_adjust_cfa_offset -8\n  .cfi_restore %r12\n"
        "  pop %rbx\n  .cfi_adjust_cfa_offset -8\n  .cfi_restore %rbx\n"
        "  pop %rbp\n  .cfi_adjust_cfa_offset -8\n  .cfi_restore %rbp\n"
        "  ret\n"
        "  .cfi_endproc\n"
        ".size call_optimized, .-call_optimized\n"
        "leave_optimized:\n"
        "  .cfi_startproc\n"
        "  mov %rdi, %rax\n"
        "  mov %fs:optimized_rsp@tpoff, %rsp\n"
        "  .cfi_undefined %rip\n" // its caller's frame no longer exists
        "  jmp .Lreturn\n"
        "  .cfi_endproc\n"
        ".size leave_optimized, .-leave_optimized\n"
        ".popsection");

// null_checked(p) returns *p, or FAULTED where p is null: the check is the fault.
int64_t null_checked(const int64_t *p);
extern char null_faults[], null_recovers[];
__asm__(".pushsection .text\n"
        ".globl null_checked, null_faults, null_recovers\n"
        ".type null_checked, @function\n"
        "null_checked:\n"
        "  .cfi_startproc\n"
        "null_faults:\n"
        "  mov (%rdi), %rax\n"
        "  ret\n"
        "null_recovers:\n"
        "  mov $1000003, %eax\n"
        "  ret\n"
        "  .cfi_endproc\n"
        ".size null_checked, .-null_checked\n"
        ".popsection");

static struct {
  const char *object, *middle;
  int wait, signals, unload, churn, threads, rounds;
} options = {.middle = "none", .threads = 1, .rounds = 1};

static char **arguments;
static struct loaded *code;
static int64_t (*entry)(int64_t);
static int64_t (*osr)(int32_t, int64_t, int64_t, int64_t, int64_t);
static _Atomic uint64_t checksum;
static atomic_int alarms, users, faults;

_Noreturn void __llvm_deoptimize(int32_t reason, int64_t a, int64_t b, int64_t c, int64_t d) {
  leave_optimized(osr(reason, a, b, c, d));
}

static void on_alarm(int n) { (void)n; atomic_fetch_add(&alarms, 1); }
static void on_user(int n) { (void)n; atomic_fetch_add(&users, 1); }

static void on_fault(int n, siginfo_t *info, void *context) {
  greg_t *r = ((ucontext_t *)context)->uc_mcontext.gregs;
  (void)info;
  atomic_fetch_add(&faults, 1);
  if (r[REG_RIP] == (greg_t)null_faults) {
    r[REG_RIP] = (greg_t)null_recovers;
  } else if (optimized_rsp && r[REG_RIP] >= (greg_t)code->memory && r[REG_RIP] < (greg_t)(code->memory + code->size)) {
    r[REG_RIP] = (greg_t)leave_optimized;
    r[REG_RDI] = FAULTED;
  } else {
    signal(n, SIG_DFL); // the same instruction faults again, and ends the process
  }
}

static void set_timer(int microseconds) {
  struct itimerval t = {{0, microseconds}, {0, microseconds}};
  setitimer(ITIMER_REAL, &t, NULL);
}

static void handle_signals(void) {
  struct sigaction a = {.sa_flags = SA_RESTART};
  a.sa_handler = on_alarm;
  sigaction(SIGALRM, &a, NULL);
  a.sa_handler = on_user;
  sigaction(SIGUSR1, &a, NULL);
  a.sa_flags = SA_SIGINFO;
  a.sa_sigaction = on_fault;
  sigaction(SIGSEGV, &a, NULL);
}

static void load_code(void) {
  code = load_object(options.object);
  entry = (int64_t(*)(int64_t))function_address(code->object, "entry");
  osr = (int64_t(*)(int32_t, int64_t, int64_t, int64_t, int64_t))function_address(code->object, "osr");
  if (!entry) die("no function entry", options.object);
}

static uint64_t call(int64_t argument) {
  if (options.signals) {
    raise(SIGUSR1);
    if (null_checked(NULL) != FAULTED) die("no fault", "null_checked");
  }
  return share(argument, entry(argument));
}

// rounds_of calls entry for one thread's rounds from `from` up to, not including, `to`.
static uint64_t rounds_of(int64_t thread, int64_t from, int64_t to) {
  uint64_t sum = 0;
  for (int64_t r = from; r < to; r++) sum += call(r * options.threads + thread);
  return sum;
}

static pid_t child;
static uint64_t first; // the progress of the first thread

// halfway performs the action of -m before round `next` of the first thread.
static void halfway(int64_t next) {
  if (!strcmp(options.middle, "fork")) {
    child = fork();
    if (child) return;
    printf("child %llu\n", (unsigned long long)(first + rounds_of(0, next, options.rounds)));
    fflush(stdout);
    _exit(0);
  } else if (!strcmp(options.middle, "spawn")) {
    char *argv[] = {"true", NULL};
    if (posix_spawn(&child, "/bin/true", NULL, NULL, argv, NULL)) die("cannot spawn", "/bin/true");
  } else if (!strcmp(options.middle, "exec")) {
    signal(SIGALRM, SIG_IGN); // the timer outlives the handler
    for (char **a = arguments; *a; a++)
      if (!strcmp(*a, "exec")) *a = "none";
    execv("/proc/self/exe", arguments);
    die("cannot run again", arguments[0]);
  } else if (!strcmp(options.middle, "exit")) {
    exit(3);
  } else if (!strcmp(options.middle, "abort")) {
    abort();
  }
}

struct worker {
  pthread_t thread;
  int64_t number, from, to;
};

static void *work(void *p) {
  struct worker *w = p;
  int64_t half = options.rounds / 2;
  if (w->number != 0) {
    atomic_fetch_add(&checksum, rounds_of(w->number, w->from, w->to));
    return NULL;
  }
  if (w->from <= half && half < w->to) {
    first += rounds_of(0, w->from, half);
    halfway(half);
    w->from = half;
  }
  first += rounds_of(0, w->from, w->to);
  return NULL;
}

static void *work_once(void *p) {
  atomic_fetch_add(&checksum, call(((struct worker *)p)->number));
  return NULL;
}

// While one thread is in execve, before the others are killed, the kernel refuses new threads with EAGAIN
// (copy_fs: fs->in_exec), so that is no failure at once.
static void start_thread(struct worker *w, void *(*f)(void *)) {
  int failed;
  for (int tries = 0; (failed = pthread_create(&w->thread, NULL, f, w)) == EAGAIN && tries < 180000; tries++) usleep(1000);
  if (failed) die("no thread", "pthread_create");
}

// generation runs all threads from one round up to, not including, another.
static void generation(int64_t from, int64_t to) {
  struct worker *all = calloc(options.threads, sizeof *all);
  for (int64_t t = 0; t < options.threads; t++) {
    all[t] = (struct worker){.number = t, .from = from, .to = to};
    start_thread(&all[t], work);
  }
  for (int64_t n = 0; from == 0 && n < options.churn; n++) {
    struct worker w = {.number = -1 - n};
    start_thread(&w, work_once);
    pthread_join(w.thread, NULL);
  }
  for (int64_t t = 0; t < options.threads; t++) pthread_join(all[t].thread, NULL);
  free(all);
}

static void parse(int argc, char **argv) {
  int c;
  arguments = argv;
  while ((c = getopt(argc, argv, "wgu:c:m:")) != -1) switch (c) {
    case 'w': options.wait = 1; break;
    case 'g': options.signals = 1; break;
    case 'u': options.unload = atoi(optarg); break;
    case 'c': options.churn = atoi(optarg); break;
    case 'm': options.middle = optarg; break;
    default: exit(64);
    }
  if (optind >= argc) die("no object", argv[0]);
  options.object = argv[optind++];
  if (optind < argc) options.threads = atoi(argv[optind++]);
  if (optind < argc) options.rounds = atoi(argv[optind++]);
}

int main(int argc, char **argv) {
  parse(argc, argv);
  setvbuf(stdout, NULL, _IOLBF, 0); // a child must not print its parent's output again
  handle_signals();
  load_code();
  if (options.wait) {
    char byte;
    printf("ready\n");
    while (read(0, &byte, 1) < 0) {}
  }
  if (options.signals) set_timer(1000);
  int64_t step = options.unload ? options.unload : options.rounds;
  for (int64_t from = 0, to; from < options.rounds; from = to) {
    to = from + step < options.rounds ? from + step : options.rounds;
    if (from) {
      unload_object(code);
      load_code();
    }
    generation(from, to);
  }
  int status = 0;
  if (child && (waitpid(child, &status, 0) != child || status)) die("the child failed", options.middle);
  if (options.signals) {
    while (!atomic_load(&alarms)) usleep(1000);
    set_timer(0);
    printf("signals %d faults %d\n", atomic_load(&users), atomic_load(&faults));
  }
  printf("checksum %llu\n", (unsigned long long)(first + atomic_load(&checksum)));
  return 0;
}
