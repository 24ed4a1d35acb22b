"""The kernel's namespace as islands of pickles and chunks of bytes, and back.

`save.save_state` runs in a forked child of the kernel, `load.load_state` in a fresh kernel. Neither
forks, opens sockets or writes files: chunks go to the host and come from there.
"""
