"""Custom resources: what a CustomResourceDefinition defines, as stores and strategies that the rest can serve."""
