// Services, Ingresses and what they lead to.

import { texts } from "../texts.js";
import { chips, code, fieldsSection, link, listOf, tableSection } from "./model.js";

/** @typedef {import("../types.js").KubeObject} KubeObject */
/** @typedef {import("./model.js").Section} Section */

const t = texts.describe;

/** @param {any} status */
const balancers = (status) => listOf(status?.loadBalancer?.ingress).map((one) => one.hostname ?? one.ip);

/** @param {KubeObject} object @returns {(Section | null)[]} */
export function serviceSections({ spec = {}, status = {} }) {
  return [
    fieldsSection(t.status, [
      [t.type, spec.type], [t.clusterIPs, (spec.clusterIPs ?? [spec.clusterIP]).filter(Boolean)], [t.externalIPs, spec.externalIPs], [t.externalName, spec.externalName],
      [t.loadBalancer, balancers(status)], [t.selector, chips(spec.selector)], [t.sessionAffinity, spec.sessionAffinity], [t.trafficPolicy, spec.externalTrafficPolicy],
    ]),
    tableSection(t.ports, t.portColumns, listOf(spec.ports).map((port) => [port.name, `${port.port}/${port.protocol ?? "TCP"}`, port.targetPort, port.nodePort, port.appProtocol])),
  ];
}

/** @param {KubeObject} object @returns {(Section | null)[]} */
export function ingressSections({ metadata, spec = {}, status = {} }) {
  const backend = (/** @type {any} */ one) => {
    if (one?.service) return { text: `${one.service.name}:${one.service.port?.number ?? one.service.port?.name ?? ""}`, to: { apiVersion: "v1", kind: "Service", name: one.service.name, namespace: metadata.namespace } };
    return one?.resource ? `${one.resource.kind} ${one.resource.name}` : "";
  };
  return [
    fieldsSection(t.status, [
      [t.ingressClass, link("networking.k8s.io/v1", "IngressClass", spec.ingressClassName)], [t.loadBalancer, balancers(status)], [t.defaultBackend, backend(spec.defaultBackend)],
    ]),
    tableSection(t.rules, t.ruleColumns, listOf(spec.rules).flatMap((rule) =>
      (listOf(rule.http?.paths).length ? listOf(rule.http.paths) : [{}]).map((path) => [rule.host ?? "*", code(path.path ?? "/"), path.pathType, backend(path.backend)]))),
    tableSection("TLS", t.tlsColumns, listOf(spec.tls).map((one) => [(one.hosts ?? []).join(", "), link("v1", "Secret", one.secretName, metadata.namespace)])),
  ];
}
