// What else is known of a custom resource: its printed columns, and the schema of its kind.

import * as api from "../core/api.js";
import { schemaOf } from "../lib/schema.js";

/** @typedef {import("../lib/describe/generic.js").Context} Context */
/** @typedef {import("../lib/types.js").Target} Target */

const TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json";
// Columns that the page has anyway.
const SHOWN_ELSEWHERE = ["Name", "Age"];
/** Documents of OpenAPI by group and version. @type {Map<string, Promise<any>>} */
const documents = new Map();

/** @param {string} group @param {string} version @returns {Promise<any>} null if it cannot be read. */
function documentOf(group, version) {
  const path = `/openapi/v3/apis/${encodeURIComponent(group)}/${encodeURIComponent(version)}`;
  const known = documents.get(path);
  if (known) return known;
  const read = api.json(path).catch(() => { documents.delete(path); return null; });
  documents.set(path, read);
  return read;
}

/**
 * Read what else is known of an object; what cannot be read is left out.
 *
 * @param {Target} target
 * @param {AbortSignal} signal
 * @returns {Promise<Context>}
 */
export async function contextOf({ resource, path }, signal) {
  const [table, document] = await Promise.all([
    api.json(path, { accept: TABLE, signal }).catch(() => null), resource.group ? documentOf(resource.group, resource.version) : null,
  ]);
  const cells = table?.rows?.[0]?.cells ?? [];
  const columns = (table?.kind === "Table" ? table.columnDefinitions : []).map((/** @type {any} */ { name, description = "" }, /** @type {number} */ index) => ({ name, description, value: cells[index] }))
    .filter((/** @type {{ name: string }} */ { name }) => !SHOWN_ELSEWHERE.includes(name));
  return { schema: document ? schemaOf(document, resource) : undefined, columns };
}
