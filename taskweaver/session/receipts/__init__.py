"""Receipts: an answer in one file, with the cells, outcomes and input hashes that prove it."""
