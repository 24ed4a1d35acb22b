"""Doors: the ways in which programs on other machines use an application."""
