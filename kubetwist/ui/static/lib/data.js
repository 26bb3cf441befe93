// The data of ConfigMaps and Secrets.

/**
 * @typedef {object} Entry
 * @property {string} key
 * @property {string | null} text null for binary data.
 * @property {Uint8Array<ArrayBuffer>} bytes
 */

/** @param {string} text @returns {Uint8Array<ArrayBuffer>} Without bytes if the text is not base64. */
export function bytesOf(text) {
  try { return Uint8Array.from(atob(text), (character) => character.charCodeAt(0)); } catch { return new Uint8Array(); }
}

/** @param {Uint8Array} bytes @returns {string | null} null if it is not UTF-8, or has control characters. */
export function textOf(bytes) {
  let text;
  try { text = new TextDecoder("utf-8", { fatal: true }).decode(bytes); } catch { return null; }
  return /[\0-\x08\x0e-\x1f]/.test(text) ? null : text;
}

/**
 * Return the entries of an object, sorted by their keys.
 *
 * @param {any} object A ConfigMap or Secret.
 * @returns {Entry[]}
 */
export function entriesOf(object) {
  const encoder = new TextEncoder();
  const plain = object.kind === "Secret" ? {} : object.data ?? {};
  const encoded = object.kind === "Secret" ? object.data ?? {} : object.binaryData ?? {};
  const found = [
    ...Object.entries(plain).map(([key, value]) => ({ key, text: String(value), bytes: encoder.encode(String(value)) })),
    ...Object.entries(encoded).map(([key, value]) => { const bytes = bytesOf(String(value)); return { key, text: textOf(bytes), bytes }; }),
  ];
  return found.sort((a, b) => (a.key < b.key ? -1 : 1));
}
