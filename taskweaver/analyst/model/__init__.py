"""The built-in offline analyst: a model made of rules, for those who have no other."""

from taskweaver.analyst.model.service import OfflineService

__all__ = ["OfflineService"]
