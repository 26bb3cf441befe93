// Web pages of a service or pod: opened through the proxy of the API with a ticket, or by a command.

import * as api from "../core/api.js";
import { button, h, problem, replace } from "../core/dom.js";
import { forwardCommand, proxyPath, webPorts } from "../lib/ports.js";
import { texts } from "../lib/texts.js";
import { plainTable } from "./sections.js";

/** @typedef {import("../lib/ports.js").WebPort} WebPort */
/** @typedef {import("../lib/types.js").Target} Target */

const t = texts.streams;

/**
 * Return the section with the ports that speak HTTP; null without any.
 *
 * @param {any} object
 * @param {Target} target
 */
export function webSection(object, { resource: { resource }, namespace, name }) {
  const ports = webPorts(object);
  if (!ports.length) return null;
  const messages = h("div", { "aria-live": "polite" });
  const row = (/** @type {WebPort} */ port) => {
    const label = `${port.port}${port.name ? ` (${port.name})` : ""}`, command = forwardCommand(resource, namespace, name, port);
    const open = button(t.open, () => openPort(proxyPath(resource, namespace, port), messages), { hidden: true, "aria-label": `${t.open} ${label}`, class: "open-port" });
    offer(open, resource, namespace, port);
    return [h("span", null, label), open, h("code", null, command), button(texts.copy, () => navigator.clipboard.writeText(command), { "aria-label": `${texts.copy} ${command}` })];
  };
  return h("section", { class: "section", id: "web" }, h("h2", null, t.web), h("p", { class: "quiet" }, t.webLimits), messages, plainTable(t.webColumns, ports.map(row)));
}

/** A ticket belongs to a session; without one, as with a client certificate, there is only the command. @param {HTMLElement} open @param {string} resource @param {string} namespace @param {WebPort} port */
async function offer(open, resource, namespace, { target }) {
  if (!api.hasSession()) return;
  open.hidden = !(await api.mayI({ verb: "get", resource, subresource: "proxy", namespace, name: target }).catch(() => false));
}

/** @param {string} path @param {HTMLElement} messages */
async function openPort(path, messages) {
  replace(messages);
  try {
    const { path: address } = await api.post("/ui/proxy", { path });
    window.open(address, "_blank", "noopener");
  } catch (error) { replace(messages, problem(error)); }
}
