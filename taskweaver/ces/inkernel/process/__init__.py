"""The process of a kernel: its fork, its limits and its environment."""
