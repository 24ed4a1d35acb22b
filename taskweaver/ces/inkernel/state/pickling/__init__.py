"""One pickling: reducers, placeholders, tokens, and the functions that read them back."""
