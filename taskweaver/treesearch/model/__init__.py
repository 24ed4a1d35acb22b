"""The core of a search: nodes, journal, policy, stages, budget; `phase_plan` reads plans."""
