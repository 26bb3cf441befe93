"""The admission chain: attributes, phases, the order of plugins."""
