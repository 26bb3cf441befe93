"""API priority and fairness: classification, queuing and dispatch of requests."""
