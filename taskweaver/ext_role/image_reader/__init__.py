"""The ImageReader: looks at pictures."""
