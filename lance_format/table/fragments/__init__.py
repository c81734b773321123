"""The data files and deletion files of one fragment, read and written."""
