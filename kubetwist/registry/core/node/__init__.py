"""Nodes: rules, addresses of kubelets, and the graph of the node authorizer."""
