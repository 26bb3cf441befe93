// Schemas of OpenAPI v3 as the server publishes them for a group and version: what may be at a path, and what is wrong.

/** @typedef {import("./yamltree.js").Path} Path */

/**
 * @typedef {object} Field What may be at a place; references are resolved.
 * @property {string} type A type of JSON; "" if several are possible.
 * @property {string} label The type for users: "[]Container", "map[string]string".
 * @property {string} description
 * @property {Record<string, any>} properties Unresolved schemas by name.
 * @property {string[]} required
 * @property {any} items The unresolved schema of items.
 * @property {any} additional The unresolved schema of other members; null if there are none.
 * @property {boolean} open Whether any member is allowed.
 * @property {any[]} values The allowed values; empty if all are.
 * @property {any} raw The merged keywords.
 */

/**
 * @typedef {object} Fault What is wrong at a path.
 * @property {Path} path Of the value; of the parent if a field is missing.
 * @property {"unknown" | "missing" | "type" | "value" | "pattern" | "minimum" | "maximum" | "short" | "long" | "many" | "few"} code
 * @property {any} detail The name of the field, the expected type or values, or the limit.
 * @property {string} [similar] The known field with the most similar name.
 */

/** @typedef {{ name: string, label: string, description: string, required: boolean, shape: "map" | "seq" | "scalar" }} Completion */

const MAX_REFERENCES = 20;
// Limits of patterns and of the values that are compared with them.
const MAX_PATTERN = 200;
const MAX_REPETITIONS = 3;
const MAX_FAULTS = 100;
const TYPES = ["object", "array", "string", "integer", "number", "boolean"];

/** @param {any} value */
const isMap = (value) => value !== null && typeof value === "object" && !Array.isArray(value);

/** @param {any} value */
const typeOf = (value) => (Array.isArray(value) ? "array" : value === null ? "null" : typeof value === "number" ? (Number.isInteger(value) ? "integer" : "number") : typeof value);

/** @param {any} reference */
const nameOf = (reference) => String(reference).split(/[./]/).at(-1) ?? "";

/** The schemas of one group and version. */
export class Schemas {
  /** @param {any} document The OpenAPI document. */
  constructor(document) {
    /** @type {Record<string, any>} */
    this.schemas = isMap(document?.components?.schemas) ? document.components.schemas : {};
    /** @type {Map<string, any>} */
    this.kinds = new Map();
    /** @type {WeakMap<object, Field>} */
    this.fields = new WeakMap();
    for (const schema of Object.values(this.schemas)) {
      const kinds = schema?.["x-kubernetes-group-version-kind"];
      if (Array.isArray(kinds)) for (const one of kinds) this.kinds.set(`${one.group ? `${one.group}/` : ""}${one.version} ${one.kind}`, schema);
    }
  }

  /** Return the field of a kind; null if it is unknown. @param {string} apiVersion @param {string} kind */
  ofKind(apiVersion, kind) {
    const schema = this.kinds.get(`${apiVersion} ${kind}`);
    return schema ? this.field(schema) : null;
  }

  /** Return the keywords of a schema and of its references; its own ones take precedence. @param {any} schema @param {number} [depth] @returns {any} */
  merged(schema, depth = 0) {
    if (!isMap(schema) || depth > MAX_REFERENCES) return {};
    const { $ref, allOf, ...rest } = schema;
    const prefix = "#/components/schemas/";
    let found = {};
    if (typeof $ref === "string" && $ref.startsWith(prefix)) {
      const name = $ref.slice(prefix.length);
      found = { ...this.merged(Object.hasOwn(this.schemas, name) ? this.schemas[name] : null, depth + 1), title: nameOf(name) };
    }
    if (Array.isArray(allOf)) for (const one of allOf) found = { ...found, ...this.merged(one, depth + 1) };
    return { ...found, ...rest };
  }

  /** Return the field of a schema. @param {any} schema @returns {Field} */
  field(schema) {
    if (!isMap(schema)) return this.field({ "x-kubernetes-preserve-unknown-fields": true });
    const known = this.fields.get(schema);
    if (known) return known;
    const raw = this.merged(schema);
    const several = raw["x-kubernetes-int-or-string"] || raw.format === "int-or-string" || Array.isArray(raw.oneOf) || Array.isArray(raw.anyOf);
    const type = !several && TYPES.includes(raw.type) ? raw.type : "";
    const properties = isMap(raw.properties) ? raw.properties : {};
    const additional = isMap(raw.additionalProperties) ? raw.additionalProperties : null;
    const open = Boolean(raw["x-kubernetes-preserve-unknown-fields"] || raw["x-kubernetes-embedded-resource"] || raw.additionalProperties === true)
      || (!additional && !Object.keys(properties).length);
    /** @type {Field} */
    const field = {
      type, properties, additional, open, raw, items: raw.items, label: "", description: typeof raw.description === "string" ? raw.description : "",
      required: Array.isArray(raw.required) ? raw.required.filter((/** @type {any} */ one) => typeof one === "string") : [],
      values: Array.isArray(raw.enum) ? raw.enum.filter((/** @type {any} */ one) => one !== null && typeof one !== "object") : [],
    };
    this.fields.set(schema, field);
    field.label = this.labelOf(field);
    return field;
  }

  /** @param {Field} field @returns {string} */
  labelOf({ type, raw, items, additional }) {
    const inner = (/** @type {any} */ schema) => {
      const { title, type: simple } = this.merged(schema);
      return String(title || simple || "any");
    };
    if (type === "array") return `[]${inner(items)}`;
    if (type === "object" && additional) return `map[string]${inner(additional)}`;
    if (raw["x-kubernetes-int-or-string"] || raw.format === "int-or-string") return "integer or string";
    return String(raw.title || type || "any");
  }

  /** Return the field of a member; null if there is none. @param {Field} field @param {string | number} part @returns {Field | null} */
  member(field, part) {
    if (typeof part === "number") return field.type === "array" || field.items ? this.field(field.items) : null;
    if (Object.hasOwn(field.properties, part)) return this.field(field.properties[part]);
    return field.additional ? this.field(field.additional) : null;
  }

  /** Return the field at a path; null if it is unknown. @param {Field | null} root @param {Path} path */
  at(root, path) {
    let field = root;
    for (const part of path) {
      if (!field) return null;
      field = this.member(field, part);
    }
    return field;
  }

  /** Return the fields that a map may have besides those that are present, required ones first. @param {Field} field @param {string[]} present @returns {Completion[]} */
  completions(field, present) {
    const taken = new Set(present);
    const found = Object.keys(field.properties).filter((name) => !taken.has(name)).map((name) => {
      const { label, description, type } = this.field(field.properties[name]);
      /** @type {Completion} */
      const completion = { name, label, description, required: field.required.includes(name), shape: type === "object" ? "map" : type === "array" ? "seq" : "scalar" };
      return completion;
    });
    return found.sort((a, b) => Number(b.required) - Number(a.required) || (a.name < b.name ? -1 : 1));
  }

  /**
   * Return what is wrong with a value; at most a hundred faults.
   *
   * @param {Field} root
   * @param {any} value
   * @returns {Fault[]}
   */
  faults(root, value) {
    /** @type {Fault[]} */
    const found = [];
    this.collect(root, value, [], found);
    return found;
  }

  /** @param {Field} field @param {any} value @param {Path} path @param {Fault[]} found */
  collect(field, value, path, found) {
    // null is the absence of a value.
    if (value === null || value === undefined || found.length >= MAX_FAULTS) return;
    const type = typeOf(value);
    const fault = (/** @type {Fault["code"]} */ code, /** @type {any} */ detail) => { found.push({ path, code, detail }); };
    if (field.type && type !== field.type && !(field.type === "number" && type === "integer")) { fault("type", field.type); return; }
    if (field.values.length && type !== "object" && type !== "array" && !field.values.includes(value)) { fault("value", field.values); return; }
    const { pattern, minimum, maximum, minLength, maxLength, minItems, maxItems } = field.raw;
    if (type === "string") {
      if (typeof pattern === "string" && pattern.length <= MAX_PATTERN && value.length <= MAX_PATTERN && !matchesPattern(pattern, value)) fault("pattern", pattern);
      if (typeof minLength === "number" && [...value].length < minLength) fault("short", minLength);
      if (typeof maxLength === "number" && [...value].length > maxLength) fault("long", maxLength);
    } else if (type === "integer" || type === "number") {
      if (typeof minimum === "number" && value < minimum) fault("minimum", minimum);
      if (typeof maximum === "number" && value > maximum) fault("maximum", maximum);
    } else if (type === "array") {
      if (typeof minItems === "number" && value.length < minItems) fault("few", minItems);
      if (typeof maxItems === "number" && value.length > maxItems) fault("many", maxItems);
      if (field.items) {
        const inner = this.field(field.items);
        for (let index = 0; index < value.length && found.length < MAX_FAULTS; index++) this.collect(inner, value[index], [...path, index], found);
      }
    } else if (type === "object") this.collectMembers(field, value, path, found);
  }

  /** @param {Field} field @param {any} value @param {Path} path @param {Fault[]} found */
  collectMembers(field, value, path, found) {
    for (const name of field.required) {
      const missing = !Object.hasOwn(value, name) || value[name] === null;
      if (missing && this.member(field, name)?.raw.default === undefined) found.push({ path, code: "missing", detail: name });
    }
    for (const [name, inner] of Object.entries(value)) {
      if (found.length >= MAX_FAULTS) return;
      const member = this.member(field, name);
      if (member) this.collect(member, inner, [...path, name], found);
      else if (!field.open) found.push({ path: [...path, name], code: "unknown", detail: name, similar: similar(name, Object.keys(field.properties)) });
    }
  }
}

/**
 * Return whether a value matches a pattern; true if that is not checked. Patterns are regular expressions of Go, which
 * never take long. Here, those are not checked that could: with repeated groups, or with many repetitions.
 *
 * @param {string} pattern
 * @param {string} value
 */
function matchesPattern(pattern, value) {
  const count = (/** @type {RegExp} */ what) => pattern.match(what)?.length ?? 0;
  if (/\)[*+{]|\\[1-9k]/.test(pattern) || count(/[*+{]/g) > MAX_REPETITIONS || count(/\?/g) > 2 * MAX_REPETITIONS) return true;
  try { return new RegExp(pattern, "u").test(value); } catch { return true; }
}

/** Return the number of insertions, deletions and replacements between two words. @param {string} a @param {string} b */
function distance(a, b) {
  let row = Array.from({ length: b.length + 1 }, (_, index) => index);
  for (let i = 1; i <= a.length; i++) {
    const next = [i];
    for (let j = 1; j <= b.length; j++) next.push(Math.min(row[j] + 1, next[j - 1] + 1, row[j - 1] + (a[i - 1] === b[j - 1] ? 0 : 1)));
    row = next;
  }
  return row[b.length];
}

/** Return the most similar of some names, if it differs in at most two letters. @param {string} name @param {string[]} names */
function similar(name, names) {
  if (name.length < 3 || name.length > 60) return undefined;
  let best, least = 3;
  for (const one of names) {
    if (Math.abs(one.length - name.length) >= least) continue;
    const found = one.toLowerCase() === name.toLowerCase() ? 0 : distance(one, name);
    if (found < least) { best = one; least = found; }
  }
  return best;
}
