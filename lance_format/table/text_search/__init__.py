"""Text search: queries answered by INVERTED indices, and by tokenizing the rows that no index covers."""
