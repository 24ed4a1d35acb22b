"""Reading of cells before they run: against a policy, or for plugin calls alone."""

from taskweaver.code_interpreter.code_verification.policy_check import code_snippet_verification

__all__ = ["code_snippet_verification"]
