"""kubetwist: the Kubernetes API server, in Python, on Twisted."""
