"""Field management: C{metadata.managedFields}, server-side apply, and the fields that clients may own."""
