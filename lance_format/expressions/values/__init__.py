"""Values of columns and constants: casts, common types, order, sets, checked arithmetic, parts of dates."""
