"""What a role is, how roles are found, and how replies become posts."""

from taskweaver.role.role import Role
from taskweaver.role.translator import PostTranslator

__all__ = ["PostTranslator", "Role"]
