"""Reading of cells before the run, against a policy."""

from taskweaver.code_interpreter.code_verification.policy_check import code_snippet_verification

__all__ = ["code_snippet_verification"]
