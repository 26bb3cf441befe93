"""The Common Expression Language of Kubernetes: parser, type checker, cost estimator, compiler and libraries."""
