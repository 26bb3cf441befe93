"""Who did what: which requests are told of, in which words, and to whom."""
