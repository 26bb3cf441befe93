"""Custom resources: stores and strategies of the resources that CustomResourceDefinitions define."""
