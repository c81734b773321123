"""Reports of tables: their numbers, their pictures, and the mixin of `LanceDataset` that makes them."""
