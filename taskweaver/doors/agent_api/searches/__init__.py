"""Runs of tree searches over HTTP: started, watched, and stopped."""
