"""Statistics of the zones of rows: collected, stored, and read from the most precise form."""
