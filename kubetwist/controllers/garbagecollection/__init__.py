"""The garbage collector and its graph of owners and dependents."""
