"""HTTP: the servers of the chain, the installer, one handler per verb, discovery, OpenAPI, negotiation."""
