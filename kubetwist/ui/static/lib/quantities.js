// Quantities: "250m", "1Gi" (k8s.io/apimachinery, pkg/api/resource).

/** @type {Record<string, number>} */
const FACTORS = {
  "": 1, n: 1e-9, u: 1e-6, m: 1e-3, k: 1e3, M: 1e6, G: 1e9, T: 1e12, P: 1e15, E: 1e18,
  Ki: 2 ** 10, Mi: 2 ** 20, Gi: 2 ** 30, Ti: 2 ** 40, Pi: 2 ** 50, Ei: 2 ** 60,
};

/**
 * Return the value of a quantity; NaN if it is none.
 *
 * @param {string | number | undefined} text
 */
export function quantityOf(text) {
  const match = /^([+-]?(?:\d+\.?\d*|\.\d+))(?:[eE]([+-]?\d+)|([numkMGTPE]|[KMGTPE]i)?)$/.exec(String(text ?? ""));
  if (!match) return NaN;
  const [, digits, exponent, suffix] = match;
  return exponent === undefined ? Number(digits) * FACTORS[suffix ?? ""] : Number(`${digits}e${exponent}`);
}

/**
 * Format a number of bytes with at most three digits.
 *
 * @param {number} bytes
 */
export function bytesText(bytes) {
  const units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
  let unit = 0;
  while (bytes >= 1000 && unit < units.length - 1) { bytes /= 1024; unit++; }
  return `${unit && bytes < 10 ? bytes.toFixed(1) : bytes.toFixed(0)} ${units[unit]}`;
}
