"""Services: cluster IPs, node ports, and their allocators."""
