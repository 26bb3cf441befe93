// Creation of elements. Strings become text nodes: no script of this page parses a string as HTML.

import { whyAddress } from "../lib/addresses.js";
import { texts } from "../lib/texts.js";

const SVG = "http://www.w3.org/2000/svg";
const PROPERTIES = new Set(["value", "checked", "disabled", "spellcheck"]);

/** @typedef {Node | string | number | null | undefined | false} Leaf */
/** @typedef {Leaf | readonly (Leaf | readonly (Leaf | readonly Leaf[])[])[]} Child */
/** @typedef {Record<string, any> | null} Attributes Attributes by name; "on..." is an event listener. null, undefined and false are omitted. */

/** @param {readonly Child[]} children @returns {(Node | string)[]} */
const nodes = (children) => {
  /** @type {any[]} */
  const flat = children.flat(Infinity);
  return flat.filter((child) => child !== null && child !== undefined && child !== false).map((child) => (typeof child === "number" ? String(child) : child));
};

/**
 * @template {Element} T
 * @param {T} element
 * @param {Attributes} attributes
 * @param {Child[]} children
 * @returns {T}
 */
function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (PROPERTIES.has(name)) /** @type {any} */ (element)[name] = value;
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...nodes(children));
  return element;
}

/**
 * Create an element: h("a", {href: "#/"}, "home").
 *
 * @template {keyof HTMLElementTagNameMap} T
 * @param {T} name
 * @param {Attributes} [attributes]
 * @param {...Child} children
 * @returns {HTMLElementTagNameMap[T]}
 */
export const h = (name, attributes = null, ...children) => fill(document.createElement(name), attributes, children);

/**
 * Create an SVG element.
 *
 * @template {keyof SVGElementTagNameMap} T
 * @param {T} name
 * @param {Attributes} [attributes]
 * @param {...Child} children
 * @returns {SVGElementTagNameMap[T]}
 */
export const svg = (name, attributes = null, ...children) => fill(document.createElementNS(SVG, name), attributes, children);

/**
 * Replace the children of an element.
 *
 * @param {Element} element
 * @param {...Child} children
 */
export function replace(element, ...children) {
  element.replaceChildren(...nodes(children));
}

/**
 * Create a button.
 *
 * @param {string} text
 * @param {(event: MouseEvent) => void} pressed
 * @param {Record<string, any>} [attributes] `class` adds to "button".
 */
export const button = (text, pressed, { class: look = "", ...attributes } = {}) =>
  h("button", { type: "button", ...attributes, class: `button ${look}`.trim(), onclick: pressed }, text);

/**
 * Return the message of an error; with a link to the explanation if a request is forbidden.
 *
 * @param {any} error An Error, or an APIError.
 */
export function problem(error) {
  const status = error.status || {};
  /** @type {{ field?: string, message?: string }[]} */
  const causes = (status.details && status.details.causes) || [];
  return h("div", { class: "problem", role: "alert" },
    h("strong", null, status.reason || (error.code ? `HTTP ${error.code}` : error.code === 0 ? texts.noAnswer : "")), " ",
    h("span", null, error.message),
    causes.length && status.reason !== "Forbidden"
      ? h("ul", null, causes.map((cause) => h("li", null, h("code", null, cause.field || ""), " ", cause.message || ""))) : null,
    error.code === 403 && error.question ? h("p", null, h("a", { href: whyAddress(error.question) }, texts.whyLink)) : null);
}

/**
 * Show a modal dialog; it is removed when it is closed.
 *
 * @param {string} label
 * @param {(dialog: HTMLDialogElement) => Child} fillIn Returns the content.
 */
export function openDialog(label, fillIn) {
  const dialog = h("dialog", { "aria-label": label });
  dialog.append(...nodes([fillIn(dialog)]));
  dialog.addEventListener("close", () => dialog.remove());
  document.body.append(dialog);
  dialog.showModal();
  return dialog;
}

/**
 * Return an element for a view: a bar with a heading, and a body.
 *
 * @param {Child} heading
 * @param {Child} body
 */
export const frame = (heading, body) => h("div", { class: "main fills" }, h("div", { class: "bar" }, heading), body);

/** The style sheets of `styles/` that were requested. @type {Map<string, Promise<void>>} */
const sheets = new Map();

/**
 * Load a style sheet of `styles/`, once; the returned promise also ends if that fails.
 *
 * @param {string} name Without the suffix.
 * @returns {Promise<void>}
 */
export function loadStyle(name) {
  const known = sheets.get(name);
  if (known) return known;
  const href = new URL(`../styles/${name}.css`, import.meta.url).href;
  /** @type {Promise<void>} */
  const loaded = new Promise((resolve) => document.head.append(h("link", { rel: "stylesheet", href, onload: () => resolve(), onerror: () => resolve() })));
  sheets.set(name, loaded);
  return loaded;
}
