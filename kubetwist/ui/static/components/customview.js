// What else is known of a custom resource: its printed columns, and the schema of its kind.

import * as api from "../core/api.js";
import { schemasOf } from "../core/openapi.js";
import { apiVersionOf } from "../lib/resources.js";

/** @typedef {import("../lib/describe/generic.js").Context} Context */
/** @typedef {import("../lib/types.js").Target} Target */

const TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json";
// Columns that the page has anyway.
const SHOWN_ELSEWHERE = ["Name", "Age"];

/**
 * Read what else is known of an object; what cannot be read is left out.
 *
 * @param {Target} target
 * @param {AbortSignal} signal
 * @returns {Promise<Context>}
 */
export async function contextOf({ resource, path }, signal) {
  const apiVersion = apiVersionOf(resource);
  const [table, schemas] = await Promise.all([
    api.json(path, { accept: TABLE, signal }).catch(() => null), resource.group ? schemasOf(apiVersion, resource.kind) : null,
  ]);
  const cells = table?.rows?.[0]?.cells ?? [];
  const columns = (table?.kind === "Table" ? table.columnDefinitions : []).map((/** @type {any} */ { name, description = "" }, /** @type {number} */ index) => ({ name, description, value: cells[index] }))
    .filter((/** @type {{ name: string }} */ { name }) => !SHOWN_ELSEWHERE.includes(name));
  return { schema: schemas?.ofKind(apiVersion, resource.kind)?.raw, columns };
}
