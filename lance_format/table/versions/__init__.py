"""The versions of a table: listing, opening, committing, rebasing, naming and cleaning them up."""
