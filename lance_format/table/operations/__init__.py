"""The operations that this library commits, each a pure function from one manifest to the next."""
