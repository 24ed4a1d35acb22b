"""TaskWeaver: ask a question about your data; a plan, code and a live kernel answer it."""

__version__ = "0.1.0"
