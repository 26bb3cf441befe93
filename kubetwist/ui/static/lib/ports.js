// Ports of services and pods that a browser can open.

import { kindKey } from "./resources.js";
import { listOf } from "./describe/model.js";
import { commandLine } from "./shellwords.js";

/**
 * @typedef {object} WebPort
 * @property {number} port
 * @property {string} name "" without a name.
 * @property {"http" | "https"} scheme
 * @property {string} target The object and port in a path of the proxy: "https:web:443".
 */

const HTTP_PORTS = [80, 3000, 5000, 8000, 8008, 8080, 8081, 8888, 9090, 9093, 15672];
const HTTPS_PORTS = [443, 6443, 8443, 9443];

/**
 * Return the scheme of a port; null if it does not speak HTTP as far as is known.
 *
 * @param {{ name?: string, appProtocol?: string, protocol?: string, port: number }} port
 * @returns {"http" | "https" | null}
 */
export function schemeOf({ name = "", appProtocol = "", protocol = "TCP", port }) {
  if (protocol !== "TCP") return null;
  const declared = appProtocol.replace(/^.*\//, "").toLowerCase();
  if (declared) return ["https", "wss"].includes(declared) ? "https" : ["http", "ws"].includes(declared) ? "http" : null;
  if (/^https(-|$)/.test(name) || HTTPS_PORTS.includes(port)) return "https";
  return /^(http|web|ui|metrics|dashboard)(-|$)/.test(name) || HTTP_PORTS.includes(port) ? "http" : null;
}

/** @param {any} object A Service or Pod. @returns {WebPort[]} */
export function webPorts(object) {
  const { metadata, spec = {} } = object, key = kindKey(object);
  const ports = key === "/Service" ? (spec.type === "ExternalName" ? [] : listOf(spec.ports))
    : key === "/Pod" ? listOf(spec.containers).flatMap((one) => listOf(one.ports)).map((one) => ({ ...one, port: one.containerPort })) : [];
  return ports.flatMap((one) => {
    const scheme = Number.isInteger(one.port) ? schemeOf(one) : null;
    return scheme ? [{ port: one.port, name: String(one.name ?? ""), scheme, target: `${scheme === "https" ? "https:" : ""}${metadata.name}:${one.port}` }] : [];
  });
}

/** Return the path of the proxy for a port. @param {string} resource pods or services. @param {string} namespace @param {WebPort} port */
export const proxyPath = (resource, namespace, { target }) => `/api/v1/namespaces/${namespace}/${resource}/${target}/proxy/`;

/** Return a command that forwards a port. @param {string} resource pods or services. @param {string} namespace @param {string} name @param {WebPort} port */
export const forwardCommand = (resource, namespace, name, { port }) =>
  commandLine(["kubectl", "port-forward", "-n", namespace, `${resource}/${name}`, `${port < 1024 ? port + 8000 : port}:${port}`]);
