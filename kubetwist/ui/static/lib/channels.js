// The subprotocol v5.channel.k8s.io: streams of a command in one WebSocket. The first byte of a message is its channel.

export const PROTOCOL = "v5.channel.k8s.io";
export const STDIN = 0, STDOUT = 1, STDERR = 2, ERROR = 3, RESIZE = 4, CLOSE = 255;

const encoder = new TextEncoder();

/**
 * Return a message for a channel.
 *
 * @param {number} channel
 * @param {string | Uint8Array} data
 * @returns {Uint8Array<ArrayBuffer>}
 */
export function message(channel, data) {
  const bytes = typeof data === "string" ? encoder.encode(data) : data;
  const made = new Uint8Array(bytes.length + 1);
  made[0] = channel;
  made.set(bytes, 1);
  return made;
}

/** Return the message with the size of a terminal, in characters. @param {number} columns @param {number} rows */
export const resizeMessage = (columns, rows) => message(RESIZE, JSON.stringify({ Width: columns, Height: rows }));

/** Return the message that closes a channel. @param {number} channel */
export const closeMessage = (channel) => message(CLOSE, Uint8Array.of(channel));

/** @param {ArrayBuffer} received @returns {{ channel: number, data: Uint8Array } | null} null for an empty message. */
export function parseMessage(received) {
  const bytes = new Uint8Array(received);
  return bytes.length ? { channel: bytes[0], data: bytes.subarray(1) } : null;
}

/**
 * Return the result in the message of the error channel.
 *
 * @param {string} text A Status as JSON.
 * @returns {{ code: number | null, message: string }} The exit code; null if the command has not run.
 */
export function resultOf(text) {
  /** @type {any} */
  let status;
  try { status = JSON.parse(text); } catch { return { code: null, message: text }; }
  if (status?.status === "Success") return { code: 0, message: "" };
  const causes = Array.isArray(status?.details?.causes) ? status.details.causes : [];
  const code = Number(causes.find((/** @type {any} */ cause) => cause?.reason === "ExitCode")?.message);
  return { code: status?.reason === "NonZeroExitCode" && Number.isInteger(code) ? code : null, message: String(status?.message ?? text) };
}
