"""Work on whole files and across branches: consolidation, pressure, comparison, transfer, checks."""
