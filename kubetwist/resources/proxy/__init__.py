"""The reverse proxy to nodes, pods, services, kubelets and aggregated API servers."""
