"""The generic server: configuration, the chain, hooks, health, certificates, starting and stopping."""
