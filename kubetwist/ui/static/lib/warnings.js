// Events, grouped by their object and reason.

/**
 * @typedef {object} Warning Events with the same object and reason.
 * @property {string} key
 * @property {string} apiVersion Of the object.
 * @property {string} kind
 * @property {string} namespace
 * @property {string} name
 * @property {string} reason
 * @property {string} message Of the last event.
 * @property {number} count
 * @property {number} last Milliseconds since 1970.
 */

/** @param {any} value */
const text = (value) => (typeof value === "string" ? value : "");

/**
 * Return when an event was observed last, in milliseconds since 1970; NaN if it has no time.
 *
 * @param {any} event
 */
export const timeOf = ({ series, lastTimestamp, eventTime, metadata }) => Date.parse(text(series?.lastObservedTime) || text(lastTimestamp) || text(eventTime) || text(metadata?.creationTimestamp));

/**
 * Return how often an event was observed.
 *
 * @param {any} event
 * @returns {number}
 */
export function countOf({ series, count }) {
  const found = series?.count ?? count;
  return Number.isInteger(found) && found > 0 ? found : 1;
}

/**
 * Group events that were observed after a time; the group with the last one is first.
 *
 * @param {Iterable<any>} events
 * @param {number} from Milliseconds since 1970.
 * @returns {Warning[]}
 */
export function grouped(events, from) {
  /** @type {Map<string, Warning>} */
  const groups = new Map();
  for (const event of events) {
    const last = timeOf(event);
    if (!(last >= from)) continue;
    const about = event.involvedObject ?? {};
    const [apiVersion, kind, namespace, name, reason] = [about.apiVersion, about.kind, about.namespace, about.name, event.reason].map(text);
    const key = JSON.stringify([apiVersion, kind, namespace, name, text(about.uid), reason]);
    const known = groups.get(key);
    if (!known) groups.set(key, { key, apiVersion, kind, namespace, name, reason, message: text(event.message), count: countOf(event), last });
    else {
      known.count += countOf(event);
      if (last >= known.last) Object.assign(known, { last, message: text(event.message) });
    }
  }
  return [...groups.values()].sort((a, b) => b.last - a.last || (a.key < b.key ? -1 : 1));
}
