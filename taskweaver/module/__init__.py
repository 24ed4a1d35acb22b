"""Events and their emitter."""
