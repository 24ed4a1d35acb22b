"""Results of an evaluation: rows, their file, sums and comparison."""
