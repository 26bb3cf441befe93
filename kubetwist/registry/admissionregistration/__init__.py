"""The group admissionregistration.k8s.io: webhook configurations, admission policies and bindings."""
