// Floating point: the product of two matrices of doubles.
#include <stdio.h>

enum { N = 160 };
static double a[N][N], b[N][N], c[N][N];

int main(void) {
	for (int i = 0; i < N; i++)
		for (int j = 0; j < N; j++)
			a[i][j] = (i * 7 + j) % 10 / 3.0, b[i][j] = (i + j * 3) % 11 / 7.0;
	double trace = 0;
	for (int i = 0; i < N; i++) {
		for (int j = 0; j < N; j++) {
			double sum = 0;
			for (int k = 0; k < N; k++)
				sum += a[i][k] * b[k][j];
			c[i][j] = sum;
		}
		trace += c[i][i];
	}
	printf("%.6f\n", trace);
	return 0;
}
