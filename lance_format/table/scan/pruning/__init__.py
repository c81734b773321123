"""Finding the rows that a filter can match before they are read: by indices, statistics, and numbers of rows."""
