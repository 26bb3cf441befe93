"""Controllers of CertificateSigningRequests: csrsigning, csrapproving and csrcleaner."""
