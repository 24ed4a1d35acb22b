"""Physical removal of texts from the file and the files beside it."""
