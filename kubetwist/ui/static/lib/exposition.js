// The text format of Prometheus, and what plots compute from it.

/** @typedef {{ labels: Record<string, string>, value: number }} Sample */
/** @typedef {Map<string, Sample[]>} Samples By the name of the metric. */

/**
 * Parse the text format.
 *
 * @param {string} text
 * @returns {Samples}
 */
export function samples(text) {
  /** @type {Samples} */
  const found = new Map();
  for (const line of text.split("\n")) {
    const match = /^([a-zA-Z_:][\w:]*)(?:\{(.*)\})? (\S+)/.exec(line);
    if (!match) continue;
    /** @type {Record<string, string>} */
    const labels = {};
    for (const [, name, value] of (match[2] || "").matchAll(/(\w+)="((?:[^"\\]|\\.)*)"/g)) labels[name] = value;
    const sample = { labels, value: match[3] === "+Inf" ? Infinity : Number(match[3]) };
    const family = found.get(match[1]);
    if (family) family.push(sample);
    else found.set(match[1], [sample]);
  }
  return found;
}

/**
 * Return the sums of the samples of a metric, by a key.
 *
 * @param {Samples} all
 * @param {string} name
 * @param {(labels: Record<string, string>) => string} by
 * @param {(labels: Record<string, string>) => boolean} [keep] Selects samples.
 */
export function sums(all, name, by, keep = () => true) {
  /** @type {Record<string, number>} */
  const found = {};
  for (const { labels, value } of all.get(name) || []) {
    if (!keep(labels)) continue;
    const key = by(labels);
    found[key] = (found[key] || 0) + value;
  }
  return found;
}

/**
 * Return the q-quantile of the observations between two scrapes of a histogram, by linear interpolation.
 *
 * @param {number} q
 * @param {Record<string, number>} before The cumulative counts by upper bound.
 * @param {Record<string, number>} after
 * @returns {number | null} null without observations.
 */
export function quantile(q, before, after) {
  const bounds = Object.keys(after).map((bound) => [bound === "+Inf" ? Infinity : Number(bound), after[bound] - (before[bound] || 0)]).sort((a, b) => a[0] - b[0]);
  const total = bounds.at(-1)?.[1] ?? 0;
  if (!total) return null;
  let low = 0, below = 0;
  for (const [bound, count] of bounds) {
    if (count >= q * total) return bound === Infinity ? low : low + (bound - low) * ((q * total - below) / ((count - below) || 1));
    low = bound;
    below = count;
  }
  return low;
}

/**
 * Return the smallest of 1, 2, 5 and 10 times a power of ten that is not below a value: the end of an axis.
 *
 * @param {number} value Positive.
 */
export function niceLimit(value) {
  const power = 10 ** Math.floor(Math.log10(value));
  return [1, 2, 5, 10].map((one) => one * power).find((one) => one >= value * 0.999) || value;
}

/**
 * Format a value of a plot with about three digits.
 *
 * @param {number | null} value
 */
export function shortNumber(value) {
  if (value === null) return "–";
  if (value >= 100) return value.toFixed(0);
  return Number.isInteger(value) ? String(value) : value >= 10 ? value.toFixed(1) : value.toFixed(2);
}
