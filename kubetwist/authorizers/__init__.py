"""May they: the built-in authorizers."""
