"""Record what tests see of a real cluster, and load it into a test server."""
