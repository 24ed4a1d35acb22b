"""Small things every floor may use: ids, files, text, redaction."""
