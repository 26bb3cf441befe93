// Addresses of views: the fragment of the page's address.

const part = encodeURIComponent;

/**
 * A core group has no name; it is written "-".
 *
 * @param {string} text
 */
export const optional = (text) => (text === "-" ? "" : text);

/**
 * Split an address.
 *
 * @param {string} hash The fragment, with "#".
 * @returns {{ parts: string[], query: URLSearchParams }}
 */
export function parseAddress(hash) {
  const [path, query] = hash.replace(/^#\/?/, "").split("?");
  let parts;
  try { parts = path.split("/").map(decodeURIComponent); } catch { parts = [""]; }
  return { parts, query: new URLSearchParams(query || "") };
}

/**
 * Return the address of the table of a resource.
 *
 * @param {{ group: string, resource: string }} resource
 * @param {"list" | "new"} [view]
 */
export const listAddress = (resource, view = "list") => `#/${view}/${part(resource.group || "-")}/${part(resource.resource)}`;

/**
 * @typedef {object} ListState What a table shows, as far as its address says so.
 * @property {string | null} namespace null for the one that is chosen in the tab, "" for all.
 * @property {string[]} labels Requirements of the label selector.
 * @property {string[]} fields Requirements of the field selector.
 * @property {string} filter Words that the rows contain.
 * @property {string} sort The name of a column, after "-" if descending; "" without sorting.
 * @property {boolean} wide
 * @property {string[]} columns The names of the shown columns; empty for the default.
 */

/** The parameters of an address of a table, without the namespace. */
const LIST_PARAMETERS = ["labels", "fields", "filter", "sort", "wide", "columns"];

/**
 * Split a selector at its commas outside of parentheses.
 *
 * @param {string} text
 */
export const splitSelector = (text) => text.split(/,(?![^(]*\))/).map((one) => one.trim()).filter(Boolean);

/**
 * Return what a table shows by its address.
 *
 * @param {URLSearchParams} query
 * @returns {ListState}
 */
export function listStateOf(query) {
  const get = (/** @type {string} */ name) => query.get(name) ?? "";
  return {
    namespace: query.get("namespace"), labels: splitSelector(get("labels")), fields: splitSelector(get("fields")), filter: get("filter"), sort: get("sort"),
    wide: get("wide") === "1", columns: get("columns").split(",").filter(Boolean),
  };
}

/** Return whether an address says more than the namespace. @param {URLSearchParams} query */
export const hasListState = (query) => LIST_PARAMETERS.some((name) => query.has(name));

/**
 * Return the address of a table with what it shows.
 *
 * @param {{ group: string, resource: string }} resource
 * @param {ListState} state
 */
export function stateAddress(resource, { namespace, labels, fields, filter, sort, wide, columns }) {
  const query = new URLSearchParams();
  if (namespace !== null) query.set("namespace", namespace);
  if (labels.length) query.set("labels", labels.join(","));
  if (fields.length) query.set("fields", fields.join(","));
  if (filter) query.set("filter", filter);
  if (sort) query.set("sort", sort);
  if (wide) query.set("wide", "1");
  if (columns.length) query.set("columns", columns.join(","));
  return withQuery(listAddress(resource), query);
}

/**
 * Return an address with other parameters.
 *
 * @param {string} address
 * @param {URLSearchParams} query
 */
export function withQuery(address, query) {
  // Commas and equal signs are legible in a fragment, and need not be escaped there.
  const text = String(query).replaceAll("%2C", ",").replaceAll("%2F", "/");
  return address.split("?")[0] + (text ? `?${text}` : "");
}

/**
 * Return the address of the page of an object.
 *
 * @param {{ group: string, resource: string }} resource
 * @param {string | undefined} namespace
 * @param {string} name
 * @param {string} [tab]
 */
export const objectAddress = (resource, namespace, name, tab) =>
  `#/object/${part(resource.group || "-")}/${part(resource.resource)}/${part(namespace || "-")}/${part(name)}${tab ? `/${tab}` : ""}`;

/**
 * Return the address of an explanation of a forbidden request.
 *
 * @param {Record<string, string>} question
 */
export const whyAddress = (question) => `#/why?${new URLSearchParams(question)}`;

