"""Files that a run leaves behind: report, page, figures and data."""
