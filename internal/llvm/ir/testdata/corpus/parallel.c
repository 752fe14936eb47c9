// OpenMP, which outlines functions and calls a runtime.
int parallel(int *a, int n) {
  int s = 0;
#pragma omp parallel for reduction(+ : s) schedule(dynamic, 4)
  for (int i = 0; i < n; i++) s += a[i];
#pragma omp simd
  for (int i = 0; i < n; i++) a[i] *= 2;
#pragma omp task
  { a[0] = 1; }
#pragma omp critical
  { s++; }
  return s;
}
