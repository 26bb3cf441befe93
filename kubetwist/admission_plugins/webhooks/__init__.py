"""MutatingAdmissionWebhook and ValidatingAdmissionWebhook: admission by servers outside, which are asked over HTTPS."""
