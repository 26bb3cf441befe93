import assert from "node:assert/strict";
import test from "node:test";

import { forwardCommand, proxyPath, schemeOf, webPorts } from "../../../kubetwist/ui/static/lib/ports.js";

test("the scheme of a port is that of its protocol, its name or its number", () => {
  const schemes = [
    [{ port: 80 }, "http"], [{ port: 443 }, "https"], [{ port: 1234, name: "http" }, "http"], [{ port: 1234, name: "https-web" }, "https"], [{ port: 1234, name: "httpx" }, null],
    [{ port: 80, appProtocol: "tcp" }, null], [{ port: 9, appProtocol: "HTTPS" }, "https"], [{ port: 9, appProtocol: "kubernetes.io/ws" }, "http"], [{ port: 5432, name: "postgres" }, null],
    [{ port: 80, protocol: "UDP" }, null], [{ port: 8443, name: "web" }, "https"],
  ];
  for (const [port, scheme] of schemes) assert.equal(schemeOf(port), scheme, JSON.stringify(port));
});

test("services and pods have the ports that speak HTTP", () => {
  const service = { apiVersion: "v1", kind: "Service", metadata: { name: "web" }, spec: { ports: [{ port: 80, name: "http" }, { port: 443 }, { port: 53, protocol: "UDP" }] } };
  assert.deepEqual(webPorts(service).map(({ target }) => target), ["web:80", "https:web:443"]);
  assert.deepEqual(webPorts({ ...service, spec: { ...service.spec, type: "ExternalName" } }), []);
  const pod = { apiVersion: "v1", kind: "Pod", metadata: { name: "a" }, spec: { containers: [{ ports: [{ containerPort: 8080 }, { containerPort: 22 }] }, {}] } };
  const [port] = webPorts(pod);
  assert.equal(proxyPath("pods", "default", port), "/api/v1/namespaces/default/pods/a:8080/proxy/");
  assert.equal(forwardCommand("pods", "default", "a", port), "kubectl port-forward -n default pods/a 8080:8080");
  assert.equal(forwardCommand("services", "x", "web", webPorts(service)[0]), "kubectl port-forward -n x services/web 8080:80");
  for (const other of [{ apiVersion: "v1", kind: "Node", metadata: {} }, { apiVersion: "v1", kind: "Service", metadata: {}, spec: { ports: "x" } }, { apiVersion: "v1", kind: "Service", metadata: {}, spec: { ports: [{ port: "80" }] } }]) assert.deepEqual(webPorts(other), []);
});
