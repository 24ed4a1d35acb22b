"""Tables in the kernel: files read with their separators, encodings, dates and numbers."""
