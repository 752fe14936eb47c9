/* dlopens LIBRARY: loads a library and calls its function f0 a hundred times, with 0, 1, ... */
#include <dlfcn.h>
#include <stdio.h>

int main(int argc, char **argv) {
  void *library = argc == 2 ? dlopen(argv[1], RTLD_NOW) : NULL;
  long (*f0)(long, long) = library ? (long (*)(long, long))dlsym(library, "f0") : NULL;
  if (!f0) { fputs("dlopens: there is no f0\n", stderr); return 1; }
  long sum = 0;
  for (long i = 0; i < 100; i++) sum += f0(i, 2);
  printf("%ld\n", sum);
}
