"""The samples of metrics of the last hour, for the plots of the web page."""
