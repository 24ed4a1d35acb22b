"""Tables of files, read in the kernel: decisions on their form, conversions, and profiles.

pandas is imported inside of functions alone, so that a kernel's start does not wait for it.
"""
