"""The engine of a run: the coordinator, the tasks of nodes, and the transitions between stages."""
