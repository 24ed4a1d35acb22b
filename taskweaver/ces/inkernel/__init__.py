"""The code that runs inside a kernel process. The host uses some of the modules too."""
