"""The group apiextensions.k8s.io: CustomResourceDefinitions."""
