// A program that calls its function site() very often, in ways that are hard for a tool with breakpoints.
//
//	sites MODE COUNT
//
// It prints "ready", waits for a line on its standard input if the environment has WAIT, runs, and prints its result, which does not
// depend on a tracer. MODE is one of
//
//	plain    one thread
//	threads  16 threads in the same site at once
//	fork     a child every 1,000 calls, which calls site() too and whose result counts
//	vfork    a child by vfork(2) every 1,000 calls, which ends at once
//	exec     half of the calls, then another program: this one, in mode plain
//	signals  a timer interrupts it all the time; its handler calls site() too
//	fault    site() reads address 0 every 1,000 calls, and the handler repairs that
//	end      threads run, and one of them ends the process meanwhile
//	come     threads start and end all the time
//	leader   the first thread ends before the others begin
//	traps    a SIGTRAP every 1,000 calls: of an int3 of its own and of raise(3), by turns
//	vforks   meanwhile another thread waits in vfork(2) for children that take their time
//	alarms   an instruction reads address 0 each time, under a timer, and its handler repairs that
//	unreason a SIGTRAP at an instruction in a debug register, as if a hypervisor had lost the reason of the stop
//	another  the first thread ends, and another thread becomes another program: this one, in mode plain
//	churn    threads that do nothing start and end all the time, beside those that call site()
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

enum { THREADS = 16, EVERY = 1000 };

// The breakpoint is on its first instruction. With STEPPED that is one without an emulation: it must run.
__attribute__((noinline)) long site(long n) {
#ifdef STEPPED
  __asm__ volatile("bswap %0\n\tbswap %0" : "+D"(n));
#endif
  __asm__ volatile("" : "+r"(n));
  return n * 3 + 1;
}

static volatile char *volatile poked;
static char good;

__attribute__((noinline)) long faulty(long n) {
  return n * 3 + 1 + *poked;
}

// The breakpoint is on the instruction that may fault.
__attribute__((noinline)) long poke(volatile char *p) {
  long n;
  __asm__ volatile(".globl poking\npoking: movsbq (%1), %0" : "=r"(n) : "a"(p));
  return n;
}

// The breakpoint is on the instruction after the system call, which sends SIGTRAP with TRAP_BRKPT to its own thread. For the tracer this looks as if a
// hypervisor had lost the reason of a stop. Without a debug register there the program ends by SIGTRAP.
__attribute__((noinline)) long unreasoned(long n) {
#ifdef __x86_64__
  siginfo_t info = {.si_signo = SIGTRAP, .si_code = TRAP_BRKPT};
  long result, self = getpid();
  register siginfo_t *sent __asm__("r10") = &info;
  __asm__ volatile("syscall\n.globl unreason\nunreason: nop" : "=a"(result)
                   : "a"(SYS_rt_tgsigqueueinfo), "D"(self), "S"(self), "d"(SIGTRAP), "r"(sent) : "rcx", "r11", "memory");
  if (result) abort();
#endif
  return n * 3 + 1;
}

static void mend(int number, siginfo_t *info, void *context) {
  (void)number, (void)info;
  ((ucontext_t *)context)->uc_mcontext.gregs[REG_RAX] = (greg_t)&good;
}

static void repair(int number, siginfo_t *info, void *context) {
  (void)number, (void)info, (void)context;
  poked = &good;
  ((ucontext_t *)context)->uc_mcontext.gregs[REG_RIP] = (greg_t)&faulty;
}

static long count;
static atomic_long handled;

static void handler(int number) {
  (void)number;
  handled += site(0);
}

static long run(long from, long to) {
  long sum = 0;
  for (long n = from; n < to; n++) sum += site(n);
  return sum;
}

static void *worker(void *argument) { return (void *)run((long)argument, (long)argument + count); }

static void *leave(void *argument) {
  long sum = 0;
  for (long n = 0;; n++) {
    sum += site(n);
    if (argument && n == count) {
      printf("left %ld\n", run(0, count));
      exit(3);
    }
  }
  return (void *)sum;
}

static long threads(long rounds) {
  pthread_t all[THREADS];
  long sum = 0;
  for (long r = 0; r < rounds; r++) {
    for (long t = 0; t < THREADS; t++) pthread_create(&all[t], NULL, worker, (void *)(t * count));
    for (int t = 0; t < THREADS; t++) {
      void *one;
      pthread_join(all[t], &one);
      sum += (long)one;
    }
  }
  return sum;
}

static long children(int shared) {
  volatile long sum = 0;
  for (volatile long n = 0; n < count; n++) {
    sum += site(n);
    if (n % EVERY) continue;
    fflush(stdout);
    pid_t child = shared ? vfork() : fork();
    if (child == 0) _exit(shared ? 7 : run(0, 50) % 100);
    int status;
    waitpid(child, &status, 0);
    sum += status;
  }
  return sum;
}

static long faults(void) {
  struct sigaction a = {.sa_sigaction = repair, .sa_flags = SA_SIGINFO};
  sigaction(SIGSEGV, &a, NULL);
  long sum = 0;
  for (long n = 0; n < count; n++) {
    poked = n % EVERY ? &good : NULL;
    sum += faulty(n) + site(n);
  }
  return sum;
}

static long signals(void) {
  struct itimerval often = {{0, 500}, {0, 500}}, never = {{0, 0}, {0, 0}};
  signal(SIGALRM, handler);
  setitimer(ITIMER_REAL, &often, NULL);
  long sum = run(0, count);
  setitimer(ITIMER_REAL, &never, NULL);
  return sum;
}

static long alarms(void) {
  struct sigaction a = {.sa_sigaction = mend, .sa_flags = SA_SIGINFO};
  struct itimerval often = {{0, 500}, {0, 500}}, never = {{0, 0}, {0, 0}};
  sigaction(SIGSEGV, &a, NULL);
  signal(SIGALRM, handler);
  setitimer(ITIMER_REAL, &often, NULL);
  long sum = 0;
  for (long n = 0; n < count; n++) sum += poke(NULL) + n;
  setitimer(ITIMER_REAL, &never, NULL);
  return sum;
}

static pthread_t first;

static void *survive(void *argument) {
  (void)argument;
  pthread_join(first, NULL);
  printf("leader %ld\n", threads(1));
  exit(7);
}

static char **arguments;

static void *become(void *argument) {
  (void)argument;
  pthread_join(first, NULL);
  puts("alone");
  fflush(stdout);
  if (getenv("WAIT")) getchar();
  unsetenv("WAIT");
  execl(arguments[0], arguments[0], "plain", arguments[2], (char *)NULL);
  return NULL;
}

static atomic_int enough;

static void *nothing(void *argument) { return argument; }

static void *churn(void *argument) {
  while (!enough) {
    pthread_t t;
    if (pthread_create(&t, NULL, nothing, NULL) == 0) pthread_join(t, NULL);
  }
  return argument;
}

static long churned(void) {
  pthread_t all[4];
  for (int i = 0; i < 4; i++) pthread_create(&all[i], NULL, churn, NULL);
  long sum = threads(1);
  enough = 1;
  for (int i = 0; i < 4; i++) pthread_join(all[i], NULL);
  return sum;
}

static atomic_long trapped;

static void on_trap(int number) {
  (void)number;
  trapped++;
}

static long traps(void) {
  signal(SIGTRAP, on_trap);
  long sum = 0;
  for (long n = 0; n < count; n++) {
    sum += site(n);
    if (n % (2 * EVERY) == 0) __asm__ volatile("int3");
    else if (n % EVERY == 0) raise(SIGTRAP);
  }
  return sum + trapped;
}

static void *slow_children(void *argument) {
  volatile long n = 0;
  (void)argument;
  for (; n < 3; n++) {
    pid_t child = vfork();
    if (child == 0) {
      usleep(100000);
      _exit(0);
    }
    waitpid(child, NULL, 0);
  }
  return (void *)n;
}

static long vforks(void) {
  pthread_t t;
  void *children;
  pthread_create(&t, NULL, slow_children, NULL);
  long sum = run(0, count);
  pthread_join(t, &children);
  return sum + (long)children;
}

int main(int argc, char **argv) {
  if (argc < 3) return 64;
  const char *mode = argv[1];
  count = atol(argv[2]);
  puts("ready");
  fflush(stdout);
  if (getenv("WAIT")) getchar();
  long sum = 0;
  if (!strcmp(mode, "plain")) sum = run(0, count);
  else if (!strcmp(mode, "threads")) sum = threads(1);
  else if (!strcmp(mode, "come")) sum = threads(8);
  else if (!strcmp(mode, "fork")) sum = children(0);
  else if (!strcmp(mode, "vfork")) sum = children(1);
  else if (!strcmp(mode, "fault")) sum = faults();
  else if (!strcmp(mode, "signals")) sum = signals();
  else if (!strcmp(mode, "traps")) sum = traps();
  else if (!strcmp(mode, "vforks")) sum = vforks();
  else if (!strcmp(mode, "alarms")) sum = alarms();
  else if (!strcmp(mode, "unreason"))
    for (long n = 0; n < count; n++) sum += unreasoned(n);
  else if (!strcmp(mode, "churn")) sum = churned();
  else if (!strcmp(mode, "another")) {
    pthread_t t;
    first = pthread_self();
    arguments = argv;
    pthread_create(&t, NULL, become, NULL);
    pthread_exit(NULL);
  } else if (!strcmp(mode, "leader")) {
    pthread_t t;
    first = pthread_self();
    pthread_create(&t, NULL, survive, NULL);
    pthread_exit(NULL);
  } else if (!strcmp(mode, "end")) {
    pthread_t t;
    for (int i = 0; i < 4; i++) pthread_create(&t, NULL, leave, NULL);
    leave(&t);
  } else if (!strcmp(mode, "exec")) {
    printf("first half %ld\n", run(0, count));
    fflush(stdout);
    unsetenv("WAIT");
    execl("/proc/self/exe", argv[0], "plain", argv[2], (char *)NULL);
  }
  printf("%s %ld\n", mode, sum);
  return 7;
}
