"""Health of nodes, taints by their conditions, and eviction of pods from tainted nodes."""
