"""The commands of ``taskweaver memory``."""
