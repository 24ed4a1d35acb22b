"""Project folders: which one is meant, consent to it, and its opening."""
