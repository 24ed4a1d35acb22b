"""``python -m taskweaver.chat.console``: the same as ``python -m taskweaver``."""

from __future__ import annotations

from taskweaver.__main__ import main

if __name__ == "__main__":
    main()
