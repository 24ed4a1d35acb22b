"""True and false answers as data: what a prompt showed, and whether the answer follows from it."""
