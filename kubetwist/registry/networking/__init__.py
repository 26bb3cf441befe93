"""The group networking.k8s.io: Ingresses, NetworkPolicies, IPAddresses, ServiceCIDRs."""
