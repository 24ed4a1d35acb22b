"""The agent API: sessions, messages, branches, files, memory and events for programs and pages."""
