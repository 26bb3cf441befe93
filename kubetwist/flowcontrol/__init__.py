"""API priority and fairness: which requests go first, and how many at a time."""
