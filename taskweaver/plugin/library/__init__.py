"""What shipped plugins stand on: parts that are too long, or too general, for a plugin's file."""
