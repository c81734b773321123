"""The mixins of `LanceDataset`: one per kind of method."""
