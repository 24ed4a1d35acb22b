"""Measure an attempt at a sparse matrix-vector product: speed in MFLOPS, and its error.

The attempt brings bin/sparse.o with two functions:

    void *prepare(int rows, const int *starts, const int *columns, const double *values);
    void multiply(const void *prepared, const double *x, double *y);

This program links it to the harness below. `prepare` has ten seconds, which do not count.
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
#include <time.h>
#define ROWS 60000
#define TIMES 20
#define REPEATS 7
void *prepare(int rows, const int *starts, const int *columns, const double *values);
void multiply(const void *prepared, const double *x, double *y);

static unsigned long state;
static unsigned draw(unsigned below) {
  state = state * 6364136223846793005UL + 1442695040888963407UL;
  return (unsigned)(state >> 33) % below;
}
static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec + 1e-9 * t.tv_nsec;
}
static int by_size(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}
static int by_column(const void *a, const void *b) { return *(const int *)a - *(const int *)b; }

int main(int argc, char **argv) {
  state = 1 + (argc > 1 ? strtoul(argv[1], 0, 10) : 0);
  int *starts = malloc((ROWS + 1) * sizeof(int));
  starts[0] = 0;
  for (int r = 0; r < ROWS; r++)
    starts[r + 1] = starts[r] + (draw(2000) == 0 ? 3000 + draw(3000) : 4 + draw(24));
  int entries = starts[ROWS];
  int *columns = malloc(entries * sizeof(int));
  double *values = malloc(entries * sizeof(double));
  for (int r = 0; r < ROWS; r++) {
    for (int n = starts[r]; n < starts[r + 1]; n++) {
      int near = r - 200 + (int)draw(400);
      columns[n] = draw(4) && near >= 0 && near < ROWS ? near : (int)draw(ROWS);
      values[n] = draw(1000) / 1000.0 - 0.5;
    }
    qsort(columns + starts[r], starts[r + 1] - starts[r], sizeof(int), by_column);
  }
  double *x = malloc(ROWS * sizeof(double)), *y = malloc(ROWS * sizeof(double));
  for (int r = 0; r < ROWS; r++) x[r] = draw(1000) / 1000.0;
  double begin = now();
  void *prepared = prepare(ROWS, starts, columns, values);
  double preparing = now() - begin, rates[REPEATS], worst = 0.0;
  for (int n = 0; n < REPEATS; n++) {
    begin = now();
    for (int t = 0; t < TIMES; t++) { x[t] += 1e-3; multiply(prepared, x, y); }
    rates[n] = 2.0 * entries * TIMES / (now() - begin) * 1e-6;
  }
  for (int r = 0; r < ROWS; r++) {
    double sum = 0.0, size = 1e-12;
    for (int n = starts[r]; n < starts[r + 1]; n++) {
      sum += values[n] * x[columns[n]];
      size += fabs(values[n] * x[columns[n]]);
    }
    double off = fabs(y[r] - sum) / size;
    if (!(off <= worst)) worst = off;
  }
  qsort(rates, REPEATS, sizeof(double), by_size);
  int valid = worst < 1e-10 && preparing < 10.0;
  printf("{\"metric\": %.3f, \"valid\": %s, \"details\": {\"error\": %.3e, \"entries\": %d,"
         " \"preparing_s\": %.4f, \"slowest\": %.3f}}\n", rates[REPEATS / 2],
         valid ? "true" : "false", isfinite(worst) ? worst : 1e9, entries, preparing, rates[0]);
  return 0;
}
"""


def main() -> None:
    """Build the harness with the attempt's object, and run it with the run's seed."""
    if not Path("bin/sparse.o").is_file():
        sys.exit("bin/sparse.o is missing: compile src/sparse.c with -c into it")
    with tempfile.TemporaryDirectory(dir=".") as folder:
        source, program = Path(folder, "harness.c"), str(Path(folder, "harness").absolute())
        source.write_text(HARNESS)
        build = ["gcc", "-O1", "-fopenmp", str(source), "bin/sparse.o", "-lm", "-o", program]
        subprocess.run(build, check=True)
        environment = {**os.environ, "OMP_NUM_THREADS": str(len(os.sched_getaffinity(0)))}
        seed = os.environ.get("TASKWEAVER_SEED", "0")
        subprocess.run([program, seed], check=True, env=environment)


if __name__ == "__main__":
    main()
