// Faust: an oscillator that libfaust compiles, and that computes sound forever. Debian 12 has no headers of libfaust: the used
// declarations of llvm-dsp-c.h are here.
#include <stdio.h>
#include <stdlib.h>

void *createCDSPFactoryFromString(const char *name, const char *source, int argc, const char *argv[], const char *target, char *error, int level);
void *createCDSPInstance(void *factory);
void initCDSPInstance(void *dsp, int rate);
int getNumInputsCDSPInstance(void *dsp);
int getNumOutputsCDSPInstance(void *dsp);
void computeCDSPInstance(void *dsp, int count, float **inputs, float **outputs);

int main(void) {
  char error[4096];
  const char *source = "process = par(i, 8, (+(0.01 * (i + 1)) ~ _) : sin);\n";
  void *factory = createCDSPFactoryFromString("field", source, 0, NULL, "", error, -1);
  if (!factory) return fprintf(stderr, "%s\n", error), 1;
  void *dsp = createCDSPInstance(factory);
  initCDSPInstance(dsp, 48000);
  enum { count = 1 << 20 };
  int outputs = getNumOutputsCDSPInstance(dsp);
  float **out = calloc(outputs, sizeof *out);
  for (int i = 0; i < outputs; i++) out[i] = calloc(count, sizeof **out);
  printf("ready\n");
  fflush(stdout);
  for (;;) computeCDSPInstance(dsp, count, NULL, out);
}
