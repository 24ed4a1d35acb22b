"""The Planner role."""

from taskweaver.planner.planner import Planner, PlannerConfig

__all__ = ["Planner", "PlannerConfig"]
