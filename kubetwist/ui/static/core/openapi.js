// The OpenAPI v3 documents of the server, each read once.

import { Schemas } from "../lib/openapi.js";
import * as api from "./api.js";

// A kind that was missing may have been defined since, after this time in milliseconds.
const RENEWED = 10_000;

/** @type {Map<string, { read: Promise<Schemas | null>, time: number }>} */
const known = new Map();

/**
 * Return the schemas of a group and version; null if the server does not publish them.
 *
 * @param {string} apiVersion
 * @param {string} [kind] Read the document again if it lacks this kind.
 * @returns {Promise<Schemas | null>}
 */
export async function schemasOf(apiVersion, kind) {
  if (!/^(?:[a-z0-9.-]+\/)?v[a-z0-9]+$/.test(apiVersion)) return null;
  const found = known.get(apiVersion);
  if (found) {
    const schemas = await found.read;
    if ((schemas && (!kind || schemas.ofKind(apiVersion, kind))) || Date.now() - found.time < RENEWED) return schemas;
  }
  const path = apiVersion.includes("/") ? `/openapi/v3/apis/${apiVersion}` : `/openapi/v3/api/${apiVersion}`;
  const read = api.json(path).then((document) => new Schemas(document), () => null);
  known.set(apiVersion, { read, time: Date.now() });
  return read;
}
