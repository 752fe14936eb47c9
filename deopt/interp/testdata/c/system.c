// What asks the system for nothing that a run has not.
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#define TRY(x) (errno = 0, result = (long)(x), printf("%s: %ld %d\n", #x, result, errno))

int main(void) {
  long result;
  char buffer[300];
  int value = -1;
  sem_t sem;
  TRY(access("/there/is no such/file", F_OK));
  TRY(access("/there/is no such/file", R_OK | W_OK));
  TRY(access("/there/is no such/file", 99));
  memset(buffer, 0, sizeof buffer);
  TRY(getrandom(buffer, sizeof buffer, 0));
  int zeros = 0;
  for (unsigned k = 0; k < sizeof buffer; k++) zeros += !buffer[k];
  printf("%d\n", zeros < 100);
  TRY(getentropy(buffer, 256));
  TRY(getentropy(buffer, 257));

  TRY(sem_init(&sem, 0, 2));
  TRY(sem_wait(&sem));
  TRY(sem_trywait(&sem));
  TRY(sem_trywait(&sem));
  TRY(sem_post(&sem));
  TRY(sem_getvalue(&sem, &value));
  printf("%d\n", value);
  struct timespec past = {0, 0}, wrong = {0, 1000000000};
  TRY(sem_timedwait(&sem, &past));
  TRY(sem_timedwait(&sem, &past));
  TRY(sem_timedwait(&sem, &wrong));
  TRY(sem_init(&sem, 0, 0x80000000u));
  TRY(sem_init(&sem, 0, 0x7fffffff));
  TRY(sem_post(&sem));
  TRY(sem_destroy(&sem));

  pthread_mutex_t mutex, plain;
  pthread_mutexattr_t attr;
  memset(&mutex, 7, sizeof mutex);
  memset(&plain, 7, sizeof plain);
  TRY(pthread_mutexattr_init(&attr));
  TRY(pthread_mutexattr_settype(&attr, 9));
  TRY(pthread_mutexattr_settype(&attr, PTHREAD_MUTEX_RECURSIVE));
  TRY(pthread_mutex_init(&mutex, &attr));
  TRY(pthread_mutexattr_destroy(&attr));
  TRY(pthread_mutex_init(&plain, NULL));
  for (unsigned k = 0; k < sizeof mutex; k++) printf(" %d:%d", ((char *)&mutex)[k], ((char *)&plain)[k]);
  TRY(pthread_mutex_lock(&mutex));
  TRY(pthread_mutex_lock(&mutex));
  TRY(pthread_mutex_unlock(&mutex));
  TRY(pthread_mutex_unlock(&mutex));
  TRY(pthread_mutex_destroy(&mutex));

  TRY(fdopen(1, "") != NULL);
  TRY(fdopen(1, "x") != NULL);
  TRY(fdopen(77, "w") != NULL);
  FILE *f = fdopen(2, "w");
  fprintf(f, "by another name: %d\n", fileno(f));
  fflush(f);
  fclose(f);
  return 0;
}
