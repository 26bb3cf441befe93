"""The namespace controller: deletes the content of namespaces, including that of aggregated API servers."""
