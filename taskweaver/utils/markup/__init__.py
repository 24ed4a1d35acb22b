"""Text formats: Markdown, HTML, JSON and YAML, read and written safely."""
