"""Words of the language and spellings of names, before any table is looked at."""
