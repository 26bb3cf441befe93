"""Records the metrics of the last hour, and serves them to the plots of the web page."""
