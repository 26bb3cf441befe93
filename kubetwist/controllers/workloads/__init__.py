"""Controllers of workloads: they make pods, and tell how these fare. Off by default: C{--controllers=*,+workloads}."""
