// What an action is: what it asks for, the request that it sends, and the same as a command of kubectl.

import { pathOf } from "./resources.js";

/** @typedef {import("./types.js").KubeObject} KubeObject */
/** @typedef {import("./types.js").Resource} Resource */

/**
 * @typedef {object} ActionRequest
 * @property {string} method
 * @property {string} path
 * @property {string} [type] The media type of the body.
 * @property {unknown} [body]
 */

/**
 * @typedef {object} Field What the user is asked for.
 * @property {string} id
 * @property {string} label
 * @property {"number" | "text" | "area" | "checkbox" | "select" | "rows"} type
 * @property {any} [initial] A text; a boolean of a checkbox; records of rows.
 * @property {string} [pattern]
 * @property {boolean} [required]
 * @property {number} [min]
 * @property {[string, string][]} [options] Values of a selection, and their texts.
 * @property {Field[]} [columns] The fields of a row.
 */

/** @typedef {Record<string, any>} Values What the user has entered, by the ids of the fields: texts, booleans, lists of records. */

/**
 * @typedef {object} Action
 * @property {string} id
 * @property {string} label
 * @property {string} [submit] The label of the button that sends the request, if it is another one.
 * @property {string} verb The verb of the request, for authorization.
 * @property {string} [subresource]
 * @property {Record<string, string>[]} [also] Attributes of further requests.
 * @property {boolean} [danger]
 * @property {(objects: KubeObject[]) => Field[]} [fields] What the user is asked for, once for all objects.
 * @property {(object: KubeObject) => boolean} [offered] Whether the action makes sense in the object's state.
 * @property {boolean} [reads] Whether the request or `offered` need more than the metadata.
 * @property {boolean} [single] Whether the action is only offered for one object.
 * @property {"drain"} [dialog] The dialog of an action that sends several requests.
 * @property {(values: Values, objects: KubeObject[]) => string} [check] Returns why the values are invalid, or "".
 * @property {(object: KubeObject) => unknown} [basis] What the request replaces: while it is unchanged, a conflict only means that the object was changed elsewhere.
 * @property {(answer: any) => string} [secret] Returns what the response reveals, once.
 * @property {(target: Resource, object: KubeObject, values: Values, now: Date) => ActionRequest} request
 * @property {(target: Resource, object: KubeObject, values: Values) => string[]} command The words of the command, without the namespace.
 */

export const MERGE = "application/merge-patch+json", STRATEGIC = "application/strategic-merge-patch+json";

/** @param {Resource} resource @param {KubeObject} object @param {string} [subresource] */
export const pathTo = (resource, { metadata }, subresource) => `${pathOf(resource, metadata.namespace, metadata.name)}${subresource ? `/${subresource}` : ""}`;

/** @param {Resource} resource The name that kubectl accepts. */
const nameOf = (resource) => (resource.group ? `${resource.resource}.${resource.group}` : resource.resource);

/** @param {Resource} resource @param {KubeObject} object */
export const slashName = (resource, object) => `${nameOf(resource)}/${object.metadata.name}`;

/** @param {Resource} resource @param {KubeObject} object @returns {string[]} The forms of the object's name in a command. */
export const namesOf = (resource, object) => [slashName(resource, object), object.metadata.name];

/** @param {string} id @param {string} label @param {(object: KubeObject) => boolean} offered @param {object} body @param {string[]} words @param {Partial<Action>} [more] @returns {Action} */
export const patchAction = (id, label, offered, body, words, more = {}) => ({
  id, label, verb: "patch", offered, reads: true,
  request: (resource, object) => ({ method: "PATCH", path: pathTo(resource, object), type: MERGE, body }),
  command: (resource, object) => [...words, slashName(resource, object)],
  ...more,
});
