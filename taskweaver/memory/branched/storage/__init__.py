"""The file of a memory: connections, the writer, the schema, and the check of both."""
