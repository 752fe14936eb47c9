// answers: a thread sends a request to another one, and waits for the answer.
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>

static sem_t ask, answer;
static int question, sum;

static void *answering(void *unused) {
  (void)unused;
  for (;;) {
    sem_wait(&ask);
    if (question < 0) return NULL;
    sum += question;
    sem_post(&answer);
  }
}

__attribute__((noinline)) static int asked(int n) {
  question = n;
  sem_post(&ask);
  sem_wait(&answer);
  return sum;
}

int main(void) {
  pthread_t thread;
  sem_init(&ask, 0, 0);
  sem_init(&answer, 0, 0);
  if (pthread_create(&thread, NULL, answering, NULL)) return 1;
  for (int n = 1; n < 5; n++) printf("%d\n", asked(n));
  question = -1;
  sem_post(&ask);
  pthread_join(thread, NULL);
}
