"""The core of a search: nodes and their journal, metric, plan, stages, policy, and budget."""
