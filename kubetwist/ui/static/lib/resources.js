// Resources by discovery, and their paths.

/** @typedef {import("./types.js").Resource} Resource */
/** @typedef {import("./types.js").Question} Question */

const quote = encodeURIComponent;

/**
 * Return the resources in a document of aggregated discovery. Of several versions the first one, the preferred one, is used.
 *
 * @param {any} document An APIGroupDiscoveryList.
 * @returns {Resource[]}
 */
export function resourcesOf(document) {
  /** @type {Resource[]} */
  const found = [];
  for (const group of document.items || []) {
    const taken = new Set();
    for (const version of group.versions || []) {
      for (const one of version.resources || []) {
        if (taken.has(one.resource) || !one.responseKind) continue;
        taken.add(one.resource);
        found.push({
          group: group.metadata.name || "", version: version.version, resource: one.resource,
          kind: one.responseKind.kind, namespaced: one.scope === "Namespaced", verbs: one.verbs || [],
          shortNames: one.shortNames || [], subresources: (one.subresources || []).map((/** @type {any} */ sub) => sub.subresource),
          stale: version.freshness === "Stale",
        });
      }
    }
  }
  return found;
}

/**
 * Return the path of a collection, or of one object in it.
 *
 * @param {{ group: string, version: string, resource: string, namespaced: boolean }} resource
 * @param {string} [namespace]
 * @param {string} [name]
 */
export function pathOf(resource, namespace, name) {
  const root = resource.group ? `/apis/${quote(resource.group)}` : "/api";
  const where = resource.namespaced && namespace ? `/namespaces/${quote(namespace)}` : "";
  return `${root}/${quote(resource.version)}${where}/${quote(resource.resource)}${name ? `/${quote(name)}` : ""}`;
}

/**
 * Return the apiVersion of a resource's objects.
 *
 * @param {{ group: string, version: string }} resource
 */
export const apiVersionOf = (resource) => (resource.group ? `${resource.group}/${resource.version}` : resource.version);

/**
 * Return the group and kind of an object as a key for tables.
 *
 * @param {{ apiVersion: string, kind: string }} object
 */
export const kindKey = ({ apiVersion, kind }) => `${apiVersion.includes("/") ? apiVersion.split("/")[0] : ""}/${kind}`;

/**
 * Return the query for `/kubetwist/v1/why` about a forbidden request.
 *
 * @param {string} verb
 * @param {{ group: string, resource: string, namespaced: boolean }} resource
 * @param {string} [namespace]
 * @param {string} [name]
 * @returns {Question}
 */
export function questionOf(verb, resource, namespace, name) {
  /** @type {Question} */
  const question = { verb, resource: resource.resource, apiGroup: resource.group };
  if (resource.namespaced && namespace) question.namespace = namespace;
  if (name) question.name = name;
  return question;
}

/**
 * Return whether a resource matches words of its names; all do without words.
 *
 * @param {Resource} resource
 * @param {string} wanted In lower case.
 */
export function matches(resource, wanted) {
  const { resource: plural, kind, group, shortNames } = resource;
  return !wanted || `${plural} ${kind} ${group} ${shortNames.join(" ")}`.toLowerCase().includes(wanted);
}
