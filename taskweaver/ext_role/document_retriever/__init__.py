"""The DocumentRetriever: finds passages in a folder of documents."""
