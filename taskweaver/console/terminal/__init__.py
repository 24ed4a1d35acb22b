"""Screen and keyboard: blocks of text, their drawing, and the line one types at."""
