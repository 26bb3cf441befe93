"""The group certificates.k8s.io: CertificateSigningRequests and their relatives."""
