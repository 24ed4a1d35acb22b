"""Measure an attempt at the stencil: speed in MFLOPS, and the error against a plain version.

The attempt brings bin/stencil.o with one function, which makes one step on the whole grid:

    void stencil(const float *in, float *out);

This program links it to the harness below, which fills the grid, times it and checks the result.
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

HARNESS = r"""
#define _POSIX_C_SOURCE 199309L
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#define NX 64
#define NY 64
#define NZ 128
#define STEPS 20
#define REPEATS 5
#define AT(i, j, k) (((i) * NY + (j)) * NZ + (k))

void stencil(const float *in, float *out);

static void plain(const float *in, float *out) {
  for (int i = 1; i < NX - 1; i++)
    for (int j = 1; j < NY - 1; j++)
      for (int k = 1; k < NZ - 1; k++)
        out[AT(i, j, k)] = 0.4f * in[AT(i, j, k)] + 0.1f * (in[AT(i - 1, j, k)]
          + in[AT(i + 1, j, k)] + in[AT(i, j - 1, k)] + in[AT(i, j + 1, k)]
          + in[AT(i, j, k - 1)] + in[AT(i, j, k + 1)]);
}
static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec + 1e-9 * t.tv_nsec;
}
static void fill(float *grid, long by) {
  for (int n = 0; n < NX * NY * NZ; n++) grid[n] = (float)((n * by) % 101) / 101.0f;
}
static int by_size(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}
int main(int argc, char **argv) {
  long by = 37 + (argc > 1 ? atol(argv[1]) % 50 : 0);
  size_t bytes = sizeof(float) * NX * NY * NZ;
  float *a = malloc(bytes), *b = malloc(bytes), *c = malloc(bytes), *d = malloc(bytes);
  double rates[REPEATS], worst = 0.0, flops = 8.0 * (NX - 2) * (NY - 2) * (NZ - 2) * STEPS;
  for (int r = 0; r < REPEATS; r++) {
    fill(a, by);
    memcpy(b, a, bytes);
    double begin = now();
    for (int s = 0; s < STEPS; s += 2) { stencil(a, b); stencil(b, a); }
    rates[r] = flops / (now() - begin) * 1e-6;
  }
  fill(c, by);
  memcpy(d, c, bytes);
  for (int s = 0; s < STEPS; s += 2) { plain(c, d); plain(d, c); }
  for (int n = 0; n < NX * NY * NZ; n++) {
    double off = fabs(a[n] - c[n]) / (fabs(c[n]) + 1e-6);
    if (!(off <= worst)) worst = off;
  }
  qsort(rates, REPEATS, sizeof(double), by_size);
  printf("{\"metric\": %.3f, \"valid\": %s, \"details\": {\"error\": %.3e, \"slowest\": %.3f}}\n",
         rates[REPEATS / 2], worst < 1e-4 ? "true" : "false",
         isfinite(worst) ? worst : 1e9, rates[0]);
  return 0;
}
"""


def main() -> None:
    """Build the harness with the attempt's object, and run it with the run's seed."""
    if not Path("bin/stencil.o").is_file():
        sys.exit("bin/stencil.o is missing: compile src/stencil.c with -c into it")
    with tempfile.TemporaryDirectory(dir=".") as folder:
        source, program = Path(folder, "harness.c"), str(Path(folder, "harness").absolute())
        source.write_text(HARNESS)
        build = ["gcc", "-O1", "-fopenmp", str(source), "bin/stencil.o", "-lm", "-o", program]
        subprocess.run(build, check=True)
        subprocess.run([program, os.environ.get("TASKWEAVER_SEED", "0")], check=True)


if __name__ == "__main__":
    main()
