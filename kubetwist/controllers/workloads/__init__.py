"""Controllers of workloads, which create pods. Disabled by default: C{--controllers=*,+workloads}."""
