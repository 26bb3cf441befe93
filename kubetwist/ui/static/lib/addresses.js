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

