"""House rules for a kubetwist server: who may do what, and what objects must look like."""
