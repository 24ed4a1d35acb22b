"""The code that runs inside a kernel process. Only `wire` and data types are used outside too."""
