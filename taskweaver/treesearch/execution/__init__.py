"""Carries out attempts: jobs and their phases, workers, scripts, and workspaces of nodes."""
