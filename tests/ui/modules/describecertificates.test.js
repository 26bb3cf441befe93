import assert from "node:assert/strict";
import test from "node:test";

import { certificateSources, validity } from "../../../kubetwist/ui/static/lib/describe/certificates.js";
import { describe } from "../../../kubetwist/ui/static/lib/describe/index.js";
import { AUTHORITY, REQUEST, SERVER } from "./certificates.js";

const object = (apiVersion, kind, more = {}) => ({ apiVersion, kind, metadata: { name: "one", namespace: "here", uid: "u", creationTimestamp: "" }, ...more });
const base64 = (text) => Buffer.from(text).toString("base64");
const NOW = Date.parse("2024-12-15T00:00:00Z");
const text = (value) => (Array.isArray(value) ? value.map(text).join("; ") : value !== null && typeof value === "object" ? value.text : String(value ?? ""));
const shown = (one) => Object.fromEntries(describe(one, {}, NOW).map((section) => [section.title, section.fields
  ? Object.fromEntries(section.fields.map(([name, value]) => [name, text(value)])) : section.table.rows.map((row) => row.map(text))]));

test("a TLS secret has its certificate explained, never its key", () => {
  const secret = object("v1", "Secret", { type: "kubernetes.io/tls", data: { "tls.crt": base64(SERVER), "tls.key": base64(SERVER), "ca.crt": base64(AUTHORITY) } });
  assert.deepEqual(certificateSources(secret).map(({ title }) => title), ["ca.crt", "tls.crt"]);
  const { "Certificate: tls.crt": server, "Certificate: ca.crt": authority } = shown(secret);
  assert.equal(server.Subject, "C=DE, CN=example.com");
  assert.equal(server.Validity, "until 2025-01-01, 17 days left");
  assert.equal(server.Usages, "digital signature, key encipherment, server auth, client auth");
  assert.match(server["Alternative names"], /^DNS:example.com; DNS:\*/);
  assert.equal(authority.Issuer, "itself");
  assert.match(authority.Usages, /^authority, /);
  assert.deepEqual(shown(object("v1", "Secret", { data: { "tls.crt": "AAAA" } }))["Certificate: tls.crt"], { Content: "no readable certificate" });
});

test("bundles of ConfigMaps are tables", () => {
  const map = object("v1", "ConfigMap", { data: { "ca.crt": SERVER + AUTHORITY, other: "text" } });
  assert.deepEqual(shown(map)["Certificate: ca.crt"].map((row) => [row[0], row[3]]), [["C=DE, CN=example.com", "until 2025-01-01, 17 days left"], ["CN=authority, O=Exámple\\, Inc.", "until 2060-01-01, 12800 days left"]]);
  assert.equal(certificateSources(map).length, 1);
});

test("a signing request has its request and its certificate", () => {
  const request = object("certificates.k8s.io/v1", "CertificateSigningRequest", { spec: { request: base64(REQUEST), signerName: "s", usages: ["client auth"] }, status: { certificate: base64(SERVER), conditions: [{ type: "Approved", status: "True" }] } });
  const { Request, "Issued certificate": certificate, Status } = shown(request);
  assert.deepEqual([Request.Subject, Request["Alternative names"], Request.Validity], ["CN=system:node:a, O=system:nodes", "DNS:a; IP:10.0.0.2", undefined]);
  assert.equal(certificate.Subject, "C=DE, CN=example.com");
  assert.deepEqual([Status.Decision, Status.Signer, Status.Usages], ["Approved", "s", "client auth"]);
});

test("authorities of webhooks are found", () => {
  const caBundle = base64(AUTHORITY), hooks = object("admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration", { webhooks: [{ clientConfig: { caBundle } }] });
  assert.deepEqual(certificateSources(hooks).map(({ title }) => title), ["webhooks[0].clientConfig.caBundle"]);
  const found = shown(hooks);
  assert.equal(found["Certificate: webhooks[0].clientConfig.caBundle"].Issuer, "itself");
  assert.ok(!JSON.stringify(found["Other fields"] ?? {}).includes("caBundle"));
  assert.equal(certificateSources(object("apiregistration.k8s.io/v1", "APIService", { spec: { caBundle } })).length, 1);
  assert.deepEqual(certificateSources(object("v1", "Pod", { spec: {} })), []);
});

test("validity warns before the end, after it, and before the beginning", () => {
  const day = 24 * 3600 * 1000, of = (from, until) => { const { text: words, tone } = validity({ from: NOW + from * day, until: NOW + until * day }, NOW); return [words.replace(/\d{4}-\d\d-\d\d/, "DATE"), tone]; };
  assert.deepEqual(of(-10, 30), ["until DATE, 30 days left", "good"]);
  assert.deepEqual(of(-10, 29), ["until DATE, 29 days left", "waiting"]);
  assert.deepEqual(of(-10, -1), ["expired on DATE, 1 days ago", "bad"]);
  assert.deepEqual(of(1, 10), ["not valid before DATE", "bad"]);
  assert.equal(validity({ from: NaN, until: NaN }, NOW), "");
});
