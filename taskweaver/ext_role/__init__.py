"""Roles that come with the package and take part where a project names them."""
