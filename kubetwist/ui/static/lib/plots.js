// The history of metrics, and the numbers and shapes of its plots.

/** @typedef {{ name: string, labels: Record<string, string>, values: (number | null)[] }} Series */
/** @typedef {{ time: number, kind: string, text: string }} Mark A time in seconds since 1970-01-01. */
/** @typedef {{ interval: number, capacity: number, times: number[], series: Series[], marks: Mark[] }} History The answer of /ui/history. */

/** @typedef {{ factor: number, label: string }} Unit A value times the factor is shown with the label. */
/** @typedef {"seconds" | "bytes" | "rate" | "share" | "count"} Quantity */

/** A sample that is later than this number of intervals after the one before follows a gap. */
const GAP = 2.5;

/** @param {{ name: string, labels: Record<string, string> }} series */
export const keyOf = ({ name, labels }) => JSON.stringify([name, ...Object.values(labels)]);

/** @returns {History} */
export const noHistory = () => ({ interval: 10, capacity: 360, times: [], series: [], marks: [] });

/**
 * Return a history with newer samples added, without those above the capacity.
 *
 * @param {History} before
 * @param {History} answer What has happened since the last sample of `before`.
 * @returns {History}
 */
export function joined(before, answer) {
  const last = before.times.at(-1) ?? -Infinity;
  const fresh = answer.times.findIndex((time) => time > last);
  const start = fresh < 0 ? answer.times.length : fresh;
  const added = answer.times.length - start;
  const dropped = Math.max(0, before.times.length + added - answer.capacity);
  /** @type {Map<string, Series>} */
  const series = new Map();
  const old = before.times.map(() => null);
  for (const one of before.series) series.set(keyOf(one), { ...one, values: [...one.values, ...Array(added).fill(null)] });
  for (const one of answer.series) {
    const key = keyOf(one), known = series.get(key);
    const values = one.values.slice(start);
    if (known) known.values.splice(known.values.length - added, added, ...values);
    else series.set(key, { ...one, values: [...old, ...values] });
  }
  const times = [...before.times, ...answer.times.slice(start)].slice(dropped);
  const shown = [...series.values()].map((one) => ({ ...one, values: one.values.slice(dropped) })).filter((one) => one.values.some((value) => value !== null));
  /** @type {Map<string, Mark>} */
  const marks = new Map();
  for (const mark of [...before.marks, ...answer.marks]) if (!times.length || mark.time >= times[0] - answer.interval) marks.set(JSON.stringify([mark.time, mark.kind, mark.text]), mark);
  return { interval: answer.interval, capacity: answer.capacity, times, series: shown, marks: [...marks.values()] };
}

/**
 * Return the part of a history after a time.
 *
 * @param {History} all
 * @param {number} from
 * @returns {History}
 */
export function since(all, from) {
  const found = all.times.findIndex((time) => time >= from), start = found < 0 ? all.times.length : found;
  return { ...all, times: all.times.slice(start), series: all.series.map((one) => ({ ...one, values: one.values.slice(start) })), marks: all.marks.filter((mark) => mark.time >= from) };
}

/**
 * Return the ticks of an axis from 0: multiples of 1, 2 or 5 times a power of ten; the last one is not below the maximum.
 *
 * @param {number} maximum
 * @param {number} [count] The number of steps, about.
 */
export function ticks(maximum, count = 4) {
  if (!(maximum > 0) || !Number.isFinite(maximum)) return [0, 1];
  const rough = maximum / count, power = 10 ** Math.floor(Math.log10(rough));
  const step = ([1, 2, 5, 10].find((one) => one * power >= rough * 0.999) ?? 10) * power;
  const steps = Math.max(1, Math.ceil(maximum / step - 1e-9));
  return Array.from({ length: steps + 1 }, (_, index) => Number((index * step).toPrecision(12)));
}

const TIME_STEPS = [10, 30, 60, 120, 300, 600, 900, 1800, 3600];

/**
 * Return round times of day between two times, in seconds.
 *
 * @param {number} from
 * @param {number} to
 * @param {number} count The number of ticks, at most.
 * @param {number} [offset] Seconds of the local time before UTC: 60 times Date.getTimezoneOffset().
 */
export function timeTicks(from, to, count, offset = 0) {
  const step = TIME_STEPS.find((one) => (to - from) / one <= count) ?? 7200;
  const first = Math.ceil((from - offset) / step) * step + offset;
  const found = [];
  for (let time = first; time <= to; time += step) found.push(time);
  return found;
}

/**
 * Return the unit in which values up to a maximum are shown.
 *
 * @param {Quantity} quantity
 * @param {number} maximum
 * @returns {Unit}
 */
export function unitOf(quantity, maximum) {
  if (quantity === "seconds") return maximum < 0.001 ? { factor: 1e6, label: "µs" } : maximum < 1 ? { factor: 1000, label: "ms" } : { factor: 1, label: "s" };
  if (quantity === "bytes") return maximum < 1e6 ? { factor: 1e-3, label: "kB" } : maximum < 1e9 ? { factor: 1e-6, label: "MB" } : { factor: 1e-9, label: "GB" };
  if (quantity === "share") return { factor: 100, label: "%" };
  return { factor: 1, label: quantity === "rate" ? "/s" : "" };
}

/**
 * Format a number with about three digits.
 *
 * @param {number | null | undefined} value
 */
export function shortNumber(value) {
  if (value === null || value === undefined || Number.isNaN(value)) return "–";
  if (Math.abs(value) >= 1000) return String(Math.round(value));
  return String(Number(value.toPrecision(3)));
}

/**
 * Return at most a number of points; of the points that share one, the highest is kept, so that peaks remain.
 *
 * @param {number[]} times
 * @param {(number | null)[]} values
 * @param {number} most
 * @returns {{ times: number[], values: (number | null)[], size: number }} `size`: the number of points that share one.
 */
export function reduced(times, values, most) {
  if (times.length <= most) return { times, values, size: 1 };
  const size = Math.ceil(times.length / most);
  /** @type {{ times: number[], values: (number | null)[], size: number }} */
  const found = { times: [], values: [], size };
  for (let start = 0; start < times.length; start += size) {
    let best = start;
    for (let index = start; index < Math.min(start + size, times.length); index++) if ((values[index] ?? -Infinity) > (values[best] ?? -Infinity)) best = index;
    found.times.push(times[best]);
    found.values.push(values[best]);
  }
  return found;
}

/**
 * Return the sums of series up to each one, for stacked areas. A missing value counts as 0 if another series has one.
 *
 * @param {(number | null)[][]} all
 * @returns {(number | null)[][]}
 */
export function stacked(all) {
  const length = all[0]?.length ?? 0, below = Array(length).fill(0);
  const known = Array.from({ length }, (_, index) => all.some((values) => values[index] !== null));
  return all.map((values) => values.map((value, index) => (known[index] ? (below[index] += value ?? 0) : null)));
}

/**
 * Return the index of the time that is nearest; -1 without times.
 *
 * @param {number[]} times Ascending.
 * @param {number} time
 */
export function nearest(times, time) {
  let low = 0, high = times.length - 1;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (times[middle] < time) low = middle + 1;
    else high = middle;
  }
  return low > 0 && time - times[low - 1] <= times[low] - time ? low - 1 : high < 0 ? -1 : low;
}

/**
 * Return the runs of points without a gap: where values are missing, or where the server did not run.
 *
 * @param {number[]} times
 * @param {(number | null)[]} values
 * @param {number} interval
 * @returns {number[][]} Indexes.
 */
export function runs(times, values, interval) {
  /** @type {number[][]} */
  const found = [];
  let last = -Infinity;
  times.forEach((time, index) => {
    if (values[index] === null) return;
    if (time - last > GAP * interval || values[index - 1] === null) found.push([]);
    found.at(-1)?.push(index);
    last = time;
  });
  return found;
}

/** @param {number} value */
const coordinate = (value) => String(Math.round(value * 10) / 10);

/**
 * Return the path of a line; a point alone is a short line.
 *
 * @param {number[][]} parts The result of `runs`.
 * @param {(index: number) => number} x
 * @param {(index: number) => number} y
 */
export const linePath = (parts, x, y) => parts.map((part) => part.length === 1
  ? `M${coordinate(x(part[0]) - 1.5)} ${coordinate(y(part[0]))}h3`
  : `M${part.map((index) => `${coordinate(x(index))} ${coordinate(y(index))}`).join("L")}`).join("");

/**
 * Return the path of the area between two lines.
 *
 * @param {number[][]} parts
 * @param {(index: number) => number} x
 * @param {(index: number) => number} upper
 * @param {(index: number) => number} lower
 */
export const areaPath = (parts, x, upper, lower) => parts.map((part) => {
  const points = part.length === 1 ? [[x(part[0]) - 1.5, part[0]], [x(part[0]) + 1.5, part[0]]] : part.map((index) => [x(index), index]);
  const top = points.map(([at, index]) => `${coordinate(at)} ${coordinate(upper(index))}`);
  const bottom = points.reverse().map(([at, index]) => `${coordinate(at)} ${coordinate(lower(index))}`);
  return `M${[...top, ...bottom].join("L")}Z`;
}).join("");

/**
 * Return which labels fit beside each other: each needs the space of its text.
 *
 * @param {{ x: number, text: string }[]} labels Ascending.
 * @param {number} width Pixels of a character.
 */
export function fitting(labels, width) {
  let end = -Infinity;
  return labels.filter(({ x, text }) => {
    if (x < end) return false;
    end = x + text.length * width + 6;
    return true;
  });
}

/**
 * Return the names of the labels of the largest series, by the sum of their values.
 *
 * @param {Series[]} series
 * @param {number} most
 */
export function largest(series, most) {
  const total = (/** @type {Series} */ one) => one.values.reduce((/** @type {number} */ sum, value) => sum + (value ?? 0), 0);
  return series.map((one) => ({ one, sum: total(one) })).filter(({ sum }) => sum > 0).sort((a, b) => b.sum - a.sum).slice(0, most).map(({ one }) => one);
}

/**
 * Return the sum of series.
 *
 * @param {Series[]} series
 * @param {number} length
 * @returns {(number | null)[]}
 */
export const summed = (series, length) => Array.from({ length }, (_, index) => {
  const values = series.map((one) => one.values[index]).filter((value) => value !== null);
  return values.length ? values.reduce((/** @type {number} */ sum, value) => sum + (value ?? 0), 0) : null;
});
