// Durations in kubectl's format (k8s.io/apimachinery, pkg/util/duration).

const DURATION = /^(?:\d+[smhdy])+$/;

/** Seconds of each unit. @type {Record<string, number>} */
const UNITS = { s: 1, m: 60, h: 3600, d: 86400, y: 31536000 };

/**
 * Format the time between two moments.
 *
 * @param {number} from Milliseconds since 1970.
 * @param {number} [now] Milliseconds since 1970.
 * @returns {string} "3h5m"; "<invalid>" if `from` is more than a second in the future.
 */
export function age(from, now = Date.now()) {
  const seconds = Math.floor((now - from) / 1000);
  if (seconds < -1) return "<invalid>";
  if (seconds < 0) return "0s";
  if (seconds < 120) return `${seconds}s`;
  const minutes = Math.floor(seconds / 60), hours = Math.floor(minutes / 60), days = Math.floor(hours / 24);
  if (minutes < 10) return seconds % 60 ? `${minutes}m${seconds % 60}s` : `${minutes}m`;
  if (minutes < 180) return `${minutes}m`;
  if (hours < 8) return minutes % 60 ? `${hours}h${minutes % 60}m` : `${hours}h`;
  if (hours < 48) return `${hours}h`;
  if (hours < 192) return hours % 24 ? `${days}d${hours % 24}h` : `${days}d`;
  if (hours < 24 * 365 * 2) return `${days}d`;
  const years = Math.floor(days / 365);
  if (hours < 24 * 365 * 8) return days % 365 ? `${years}y${days % 365}d` : `${years}y`;
  return `${years}y`;
}

/**
 * Return whether a text is a duration.
 *
 * @param {string} text
 */
export const isDuration = (text) => DURATION.test(text);

/**
 * Return the approximate seconds of a rounded duration.
 *
 * @param {string} text "3h5m".
 */
export function secondsOf(text) {
  let seconds = 0;
  for (const [, count, unit] of text.matchAll(/(\d+)([smhdy])/g)) seconds += Number(count) * UNITS[unit];
  return seconds;
}

/**
 * Return whether a text is the age of an object; the clocks may differ by about a minute.
 *
 * @param {string} text
 * @param {number} created Milliseconds since 1970.
 * @param {number} [now] Milliseconds since 1970.
 */
export function isAge(text, created, now = Date.now()) {
  const rounded = UNITS[text.at(-1) ?? ""];
  return rounded !== undefined && Math.abs(secondsOf(text) - (now - created) / 1000) < rounded + 90;
}
