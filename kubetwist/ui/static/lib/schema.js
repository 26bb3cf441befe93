// What the schema of a custom resource says of its fields: their order and meaning. Such schemas refer to others only in metadata.

/**
 * @typedef {object} Schema
 * @property {string} [title]
 * @property {string} [description]
 * @property {string} [format]
 * @property {Record<string, Schema>} [properties]
 * @property {Schema} [items]
 * @property {Schema | boolean} [additionalProperties]
 */

const MAX_MEANING = 400;

/**
 * Return the schema of a field, or of the members of a list or map.
 *
 * @param {Schema | undefined} schema
 * @param {string} name
 * @returns {Schema | undefined}
 */
export function memberSchema(schema, name) {
  if (schema?.items) return schema.items;
  const { properties = {}, additionalProperties } = schema ?? {};
  if (Object.hasOwn(properties, name)) return properties[name];
  return typeof additionalProperties === "object" ? additionalProperties : undefined;
}

/** @param {Schema | undefined} schema */
export function meaningOf(schema) {
  const text = [schema?.title, schema?.description].filter((one) => typeof one === "string" && one).join(": ");
  return text.length > MAX_MEANING ? `${text.slice(0, MAX_MEANING)}…` : text;
}

/**
 * Return the names of the members of a value: first those of the schema in its order.
 *
 * @param {any} value
 * @param {Schema | undefined} schema
 */
export function namesInOrder(value, schema) {
  const names = Object.keys(value);
  if (Array.isArray(value) || !schema?.properties) return names;
  const order = new Map(Object.keys(schema.properties).map((name, index) => [name, index]));
  const place = (/** @type {string} */ name) => order.get(name) ?? order.size;
  return names.sort((a, b) => place(a) - place(b));
}
