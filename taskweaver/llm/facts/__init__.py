"""Facts about models: what their servers state, what calls have shown, and names last."""
