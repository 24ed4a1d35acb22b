"""Tree search: an idea goes in, the best experiment comes out, and every node remembers."""
