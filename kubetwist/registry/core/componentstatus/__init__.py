"""ComponentStatuses."""
