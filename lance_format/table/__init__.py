"""Tables: versions, fragments, commits, and the data set that users see."""
