// Creation of elements. Strings become text nodes: no script of this page parses a string as HTML.

const SVG = "http://www.w3.org/2000/svg";

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "value" || name === "checked" || name === "disabled" || name === "spellcheck") element[name] = value;
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

/** Create an element: h("a", {href: "#/"}, "home"). */
export const h = (name, attributes, ...children) => fill(document.createElement(name), attributes, children);

/** Create an SVG element. */
export const svg = (name, attributes, ...children) => fill(document.createElementNS(SVG, name), attributes, children);

export function replace(element, ...children) {
  element.replaceChildren(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false));
}

/** Return a duration in kubectl's format (k8s.io/apimachinery, pkg/util/duration). */
export function age(from, now = Date.now()) {
  const seconds = Math.floor((now - from) / 1000);
  if (seconds < -1) return "<invalid>";
  if (seconds < 0) return "0s";
  if (seconds < 120) return `${seconds}s`;
  const minutes = Math.floor(seconds / 60), hours = Math.floor(minutes / 60), days = Math.floor(hours / 24);
  if (minutes < 10) return seconds % 60 ? `${minutes}m${seconds % 60}s` : `${minutes}m`;
  if (minutes < 180) return `${minutes}m`;
  if (hours < 8) return minutes % 60 ? `${hours}h${minutes % 60}m` : `${hours}h`;
  if (hours < 48) return `${hours}h`;
  if (hours < 192) return hours % 24 ? `${days}d${hours % 24}h` : `${days}d`;
  if (hours < 24 * 365 * 2) return `${days}d`;
  const years = Math.floor(days / 365);
  if (hours < 24 * 365 * 8) return days % 365 ? `${years}y${days % 365}d` : `${years}y`;
  return `${years}y`;
}

/** Return the message of an error; with a link to the explanation if a request is forbidden. */
export function problem(error) {
  const status = error.status || {};
  const causes = (status.details && status.details.causes) || [];
  return h("div", { class: "problem", role: "alert" },
    h("strong", null, status.reason || (error.code ? `HTTP ${error.code}` : error.code === 0 ? "No answer" : "")), " ",
    h("span", null, error.message),
    causes.length && status.reason !== "Forbidden"
      ? h("ul", null, causes.map((cause) => h("li", null, h("code", null, cause.field || ""), " ", cause.message || ""))) : null,
    error.code === 403 && error.question ? h("p", null, h("a", { href: `#/why?${new URLSearchParams(error.question)}` }, "Why?")) : null);
}
