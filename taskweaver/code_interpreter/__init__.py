"""code_interpreter."""
