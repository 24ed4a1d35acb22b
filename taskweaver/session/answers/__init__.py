"""Check of an answer: `outcomes` finds each number, `units` converts, `check` marks the others."""
