"""The process of a kernel: its birth, its limits and its environment."""
