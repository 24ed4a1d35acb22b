"""Files and tables that a request can refer to."""
