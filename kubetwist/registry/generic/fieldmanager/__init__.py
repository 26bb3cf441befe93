"""Field management: C{metadata.managedFields}, server-side apply, and what clients may own."""
