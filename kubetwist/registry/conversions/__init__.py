"""How the versions of a kind map to each other where their schemas differ; one module per API group."""
