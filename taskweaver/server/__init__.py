"""The base of ``taskweaver serve``: accounts, admission, and the guard in front of every door."""
