"""View of a branch: branches, core, recall and archival memory, digests and search."""
