"""Kernel state on disk, as its host sees it: files, manifests, and their transfer."""
