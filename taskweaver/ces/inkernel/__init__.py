"""The code that runs inside a kernel process. The host uses some of its modules too."""
