"""Roles: their base class, registry, prompts and questions to a model."""

from taskweaver.role.role import Role
from taskweaver.role.translator import PostTranslator

__all__ = ["PostTranslator", "Role"]
