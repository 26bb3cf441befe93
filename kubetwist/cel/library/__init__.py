"""The functions that Kubernetes adds to CEL: one module per library; C{environments} puts them together."""
