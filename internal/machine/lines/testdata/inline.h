// What is inlined from another file.
static inline unsigned rotate(unsigned x, int by) {
  if (by == 0)
    return x;
  return x << by |
         x >> (32 - by);
}
