"""The WebSearch: asks a search engine, reads the pages, quotes the best passages."""
