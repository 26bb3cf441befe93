"""MutatingAdmissionWebhook and ValidatingAdmissionWebhook: admission webhooks over HTTPS."""
