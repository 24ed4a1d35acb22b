"""The built-in offline analyst: a model made of rules, for those who have no other."""

from taskweaver.llm.offline.service import OfflineService

__all__ = ["OfflineService"]
