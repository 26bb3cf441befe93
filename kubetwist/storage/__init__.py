"""Storage backends and the watch cache: bytes and revisions, independent of HTTP and kinds."""
