"""Clients that put load on a server; they import little, so that their processes start fast."""
