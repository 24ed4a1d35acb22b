"""Library of the shipped plugins: parts too long, or too general, for a plugin's file."""
