// Vectors as wide as the machine has them, masks, gathers, bfloat, MMX.
#include <immintrin.h>
__m512i masked(__m512i a, __m512i b, __mmask16 k) { return _mm512_mask_add_epi32(a, k, a, b); }
__m256d gathered(__m256d a, __m256i i, double *p) { return _mm256_i64gather_pd(p, i, 8); }
__m128i shuffled(__m128i a) { return _mm_shuffle_epi8(a, a); }
__m64 mmx(__m64 a) { return _mm_add_pi8(a, a); }
__m512bh brain(__m512 a, __m512 b) { return _mm512_cvtne2ps_pbh(a, b); }
void loop(float *a, float *b, double *c, short *s, int n) {
  for (int i = 0; i < n; i++)
    if (b[i] > 0) a[i] = b[i] * s[i] + c[i * 2];
}
long reduced(int *a, unsigned char *b, int n) {
  long s = 0;
  for (int i = 0; i < n; i++) s += a[i] > b[i] ? a[i] : __builtin_bswap32(b[i]);
  return s;
}
