"""The Common Expression Language, as Kubernetes speaks it: parsed, type-checked, priced and compiled to closures."""
