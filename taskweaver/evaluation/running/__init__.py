"""The run of a case: its project, its model or recording, its steps, its limit."""
