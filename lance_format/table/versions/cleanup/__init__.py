"""The removal of old versions, and of files that nothing needs. `cleanup_plan` is above: commits clean up, too."""
