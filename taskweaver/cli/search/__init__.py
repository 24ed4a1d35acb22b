"""The command ``taskweaver search``."""
