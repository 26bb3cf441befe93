"""The request handlers: get, list, watch, create, update, patch, delete and connect."""
