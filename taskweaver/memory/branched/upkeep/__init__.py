"""Work on whole files and across branches: consolidation, comparison, transfer, checks."""
