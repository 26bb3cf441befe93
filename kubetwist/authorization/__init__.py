"""Authorization: the built-in authorizers, their union and their configuration."""
