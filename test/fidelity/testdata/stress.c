/* Calls the function of an llvm-stress module and prints what it left in its buffers. */
#include <stdio.h>

void autogen(unsigned char *, unsigned *, unsigned long *, unsigned, unsigned long, unsigned char);

static union {
  unsigned char bytes[256];
  unsigned words[64];
  unsigned long longs[32];
} a, b, c;

int main(void) {
  for (int i = 0; i < 256; i++) {
    a.bytes[i] = i;
    b.bytes[i] = 255 - 3 * i;
    c.bytes[i] = i * i * 7 + 1;
  }
  autogen(a.bytes, b.words, c.longs, 0x12345678, 0xfedcba9876543210, 0x5a);
  for (int i = 0; i < 256; i++)
    printf("%02x %02x %02x\n", a.bytes[i], b.bytes[i], c.bytes[i]);
  return 0;
}
