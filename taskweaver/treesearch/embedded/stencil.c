/* A 7-point Jacobi stencil on a 64 x 64 x 128 grid; without an evaluator, checked and timed here.
   VALUES = @VALUES@ */
#define _POSIX_C_SOURCE 199309L
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#if THREADS > 1
#ifndef _OPENMP
#error "omp_set_num_threads needs -fopenmp"
#endif
#include <omp.h>
#endif

#define NX 64
#define NY 64
#define NZ 128
#define STEPS 20
#define REPEATS 5
#define AT(i, j, k) (((i) * NY + (j)) * NZ + (k))

void stencil(const float *restrict in, float *restrict out) {
#if THREADS > 1
  omp_set_num_threads(THREADS);
#endif
#if THREADS > 1
  #pragma omp parallel for num_threads(THREADS)
#endif
  for (int ib = 1; ib < NX - 1; ib += BLOCK_I)
    for (int jb = 1; jb < NY - 1; jb += BLOCK_J) {
      int ie = ib + BLOCK_I < NX - 1 ? ib + BLOCK_I : NX - 1;
      int je = jb + BLOCK_J < NY - 1 ? jb + BLOCK_J : NY - 1;
#if K_INNER
      for (int i = ib; i < ie; i++)
        for (int j = jb; j < je; j++)
          for (int k = 1; k < NZ - 1; k++)
#else
      for (int k = 1; k < NZ - 1; k++)
        for (int j = jb; j < je; j++)
          for (int i = ib; i < ie; i++)
#endif
            out[AT(i, j, k)] = 0.4f * in[AT(i, j, k)] + 0.1f * (in[AT(i - 1, j, k)]
              + in[AT(i + 1, j, k)] + in[AT(i, j - 1, k)] + in[AT(i, j + 1, k)]
              + in[AT(i, j, k - 1)] + in[AT(i, j, k + 1)]);
    }
}

#ifndef HAS_EVALUATOR
static void plain(const float *restrict in, float *restrict out) {
  for (int i = 1; i < NX - 1; i++)
    for (int j = 1; j < NY - 1; j++)
      for (int k = 1; k < NZ - 1; k++)
        out[AT(i, j, k)] = 0.4f * in[AT(i, j, k)] + 0.1f * (in[AT(i - 1, j, k)] + in[AT(i + 1, j, k)]
          + in[AT(i, j - 1, k)] + in[AT(i, j + 1, k)] + in[AT(i, j, k - 1)] + in[AT(i, j, k + 1)]);
}

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec + 1e-9 * t.tv_nsec;
}

static void fill(float *grid) {
  for (int n = 0; n < NX * NY * NZ; n++) grid[n] = (float)((n * 37L) % 101) / 101.0f;
}

static int by_size(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

int main(void) {
  size_t bytes = sizeof(float) * NX * NY * NZ;
  float *a = malloc(bytes), *b = malloc(bytes), *c = malloc(bytes), *d = malloc(bytes);
  double rates[REPEATS];
  double flops = 8.0 * (NX - 2) * (NY - 2) * (NZ - 2) * STEPS;
  for (int r = 0; r < REPEATS; r++) {
    fill(a);
    memcpy(b, a, bytes);
    double begin = now();
    for (int s = 0; s < STEPS; s += 2) { stencil(a, b); stencil(b, a); }
    rates[r] = flops / (now() - begin) * 1e-6;
  }
  fill(c);
  memcpy(d, c, bytes);
  for (int s = 0; s < STEPS; s += 2) { plain(c, d); plain(d, c); }
  double worst = 0.0;
  for (int n = 0; n < NX * NY * NZ; n++) {
    double off = fabs(a[n] - c[n]) / (fabs(c[n]) + 1e-6);
    if (off > worst) worst = off;
  }
  qsort(rates, REPEATS, sizeof(double), by_size);
  int valid = worst < 1e-4;
  printf("%.0f MFLOPS (median of %d), largest relative error %.1e\n", rates[REPEATS / 2], REPEATS, worst);
  FILE *file = fopen("working/result.json", "w");
  if (!file) return 2;
  fprintf(file, "{\"metric\": %.3f, \"valid\": %s, \"details\": {\"error\": %.3e, \"slowest\": %.3f}}",
          rates[REPEATS / 2], valid ? "true" : "false", worst, rates[0]);
  fclose(file);
  return valid ? 0 : 3;
}
#endif
