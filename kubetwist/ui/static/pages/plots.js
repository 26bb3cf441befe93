// Plots of metrics from /metrics, beginning when the view is opened.

import * as api from "../core/api.js";
import { frame, h, problem, replace, svg } from "../core/dom.js";
import { niceLimit, quantile, samples, shortNumber, sums } from "../lib/exposition.js";
import { texts } from "../lib/texts.js";

/** @typedef {import("../lib/exposition.js").Samples} Samples */
/** @typedef {Record<string, number | null>} Values By series. */

/**
 * @typedef {object} Plot
 * @property {keyof typeof texts.plotTitles} id
 * @property {string} unit "" for a number of things; "/s" for a rate.
 * @property {boolean} [rate] Whether the increase per second is shown.
 * @property {boolean} [latency] Whether the quantiles of a histogram in seconds are shown, in milliseconds.
 * @property {(all: Samples) => Record<string, number>} read
 */

/**
 * @typedef {object} Drawn A plot on the page.
 * @property {Plot} plot
 * @property {{ at: number, shown: Values }[]} points
 * @property {Record<string, number> | null} before The values of the last scrape.
 * @property {Map<string, number>} colours By series.
 * @property {HTMLElement} area
 * @property {HTMLElement} legend
 */

// Interval in milliseconds, number of scrapes, and sizes in the units of the drawing.
const INTERVAL = 3000, MAX_POINTS = 200, WIDTH = 400, HEIGHT = 150, LEFT = 44, BOTTOM = 18, TOP = 10;
// Series with the largest totals are shown, each in a colour of style.css.
const COLOURS = [0, 1, 2, 3, 4, 5];
// The shortest time that a plot shows, and the first interval, in milliseconds.
const MIN_SPAN = 30000, FIRST_INTERVAL = 1000;

/** @param {Record<string, string>} labels */
const short = (labels) => !["WATCH", "CONNECT"].includes(labels.verb);
/** @param {Record<string, number>} values @param {number} factor */
const scaled = (values, factor) => Object.fromEntries(Object.entries(values).map(([name, value]) => [name, value * factor]));
/** @param {Samples} all */
const revision = (all) => Math.max(0, ...(all.get("apiserver_watch_cache_resource_version") || []).map((one) => one.value));

/** @type {Plot[]} */
const PLOTS = [
  { id: "requests", unit: "/s", rate: true, read: (all) => sums(all, "apiserver_request_total", (labels) => labels.verb) },
  { id: "errors", unit: "/s", rate: true, read: (all) => sums(all, "apiserver_request_total", (labels) => labels.code, (labels) => Number(labels.code) >= 400) },
  { id: "latency", unit: "ms", latency: true, read: (all) => sums(all, "apiserver_request_duration_seconds_bucket", (labels) => labels.le, short) },
  { id: "inFlight", unit: "", read: (all) => sums(all, "apiserver_current_inflight_requests", (labels) => (labels.request_kind || "all").replace("readOnly", "read-only")) },
  { id: "watchers", unit: "", read: (all) => sums(all, "apiserver_longrunning_requests", (labels) => labels.resource || "other", (labels) => labels.verb === "WATCH") },
  { id: "memory", unit: "MiB", read: (all) => scaled(sums(all, "process_resident_memory_bytes", () => "resident"), 1 / 1048576) },
  { id: "processor", unit: "%", rate: true, read: (all) => scaled(sums(all, "process_cpu_seconds_total", () => "used"), 100) },
  { id: "revisions", unit: "/s", rate: true, read: (all) => ({ stored: revision(all) }) },
];

/** @param {number | null} seconds */
const milliseconds = (seconds) => (seconds === null ? null : seconds * 1000);

/**
 * Return what is shown of a scrape.
 *
 * @param {Plot} plot
 * @param {Record<string, number>} values
 * @param {Record<string, number> | null} before The scrape before; null for the first one.
 * @param {number} seconds The time between them.
 * @returns {Values | null}
 */
function shownOf(plot, values, before, seconds) {
  if (!plot.latency && !plot.rate) return values;
  if (!before) return null;
  if (plot.latency) return { p50: milliseconds(quantile(0.5, before, values)), p99: milliseconds(quantile(0.99, before, values)) };
  return Object.fromEntries(Object.entries(values).map(([name, value]) => [name, Math.max(0, value - (before[name] || 0)) / seconds]));
}

/** @param {Drawn} drawn */
function section({ plot, area, legend }) {
  const { title, note } = texts.plotTitles[plot.id];
  return h("section", { class: "plot" }, h("h2", null, title, h("small", null, [plot.unit === "/s" ? texts.perSecond : plot.unit, note].filter(Boolean).join(", "))), area, legend);
}

/**
 * Return the view of all plots.
 *
 * @returns {import("../lib/types.js").View}
 */
export function plotsView() {
  const stop = new AbortController();
  const note = h("div");
  /** @type {Drawn[]} */
  const plots = PLOTS.map((plot) => ({ plot, points: [], before: null, colours: new Map(), area: h("div"), legend: h("div", { class: "legend" }) }));
  const element = frame([h("h1", null, texts.plots), h("span", { class: "kind" }, texts.plotsSource(INTERVAL / 1000))],
    h("div", { class: "page", tabindex: "0", role: "region", "aria-label": texts.plots }, note, h("div", { class: "plots" }, plots.map(section))));
  let last = 0;
  const read = async () => {
    const text = await api.text("/metrics", { accept: "text/plain", signal: stop.signal, question: { verb: "get", path: "/metrics" } });
    const all = samples(text), now = performance.now(), seconds = (now - last) / 1000;
    for (const drawn of plots) {
      const values = drawn.plot.read(all), shown = shownOf(drawn.plot, values, drawn.before, seconds);
      drawn.before = values;
      if (!shown) continue;
      drawn.points.push({ at: now, shown });
      if (drawn.points.length > MAX_POINTS) drawn.points.shift();
      draw(drawn, now);
    }
    last = now;
    replace(note);
  };
  (async () => {
    while (!stop.signal.aborted) {
      try { await read(); } catch (error) {
        if (stop.signal.aborted) return;
        replace(note, problem(error));
        if (error.code === 401 || error.code === 403) return;
      }
      await api.pause(plots[0].points.length > 1 ? INTERVAL : FIRST_INTERVAL, stop.signal);
    }
  })();
  return { element, title: texts.plots, close: () => stop.abort() };
}

/** Choose the series to show; a line keeps its colour while it is shown. @param {Drawn} drawn */
function chooseSeries({ points, colours }) {
  /** @type {Record<string, number>} */
  const totals = {};
  for (const { shown } of points) for (const [name, value] of Object.entries(shown)) totals[name] = (totals[name] || 0) + (value || 0);
  const chosen = Object.entries(totals).sort((a, b) => b[1] - a[1]).slice(0, COLOURS.length).map(([name]) => name);
  for (const name of [...colours.keys()]) if (!chosen.includes(name)) colours.delete(name);
  for (const name of chosen) {
    if (!colours.has(name)) colours.set(name, COLOURS.find((one) => ![...colours.values()].includes(one)) ?? 0);
  }
}

/** @param {Drawn} drawn @param {number} now */
function draw(drawn, now) {
  chooseSeries(drawn);
  const { plot, points, colours, area, legend } = drawn;
  const span = Math.max(MIN_SPAN, now - points[0].at);
  const highest = niceLimit(Math.max(plot.rate ? 0.1 : 1, ...points.flatMap(({ shown }) => [...colours.keys()].map((name) => shown[name] || 0))));
  const x = (/** @type {number} */ at) => LEFT + (1 - (now - at) / span) * (WIDTH - LEFT - 6);
  const y = (/** @type {number} */ value) => TOP + (1 - value / highest) * (HEIGHT - TOP - BOTTOM);
  const rules = [0, highest / 2, highest].map((value) => [svg("line", { class: "rule", x1: LEFT, x2: WIDTH - 6, y1: y(value), y2: y(value) }),
    svg("text", { x: LEFT - 6, y: y(value) + 3, "text-anchor": "end" }, shortNumber(value))]);
  const lines = [...colours].map(([name, colour]) => {
    const path = points.flatMap(({ at, shown }) => {
      const value = shown[name];
      return value === undefined || value === null ? [] : [`${x(at).toFixed(1)} ${y(value).toFixed(1)}`];
    });
    return path.length > 1 ? svg("path", { class: `s${colour}`, fill: "none", "stroke-width": 1.6, "stroke-linejoin": "round", d: `M${path.join("L")}` }) : null;
  });
  replace(area, svg("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", "aria-label": texts.plotTitles[plot.id].title }, rules, lines,
    svg("text", { x: LEFT, y: HEIGHT - 3 }, texts.secondsAgo(Math.round(span / 1000))), svg("text", { x: WIDTH - 6, y: HEIGHT - 3, "text-anchor": "end" }, texts.now)));
  const newest = points.at(-1)?.shown ?? {};
  replace(legend, [...colours].map(([name, colour]) => h("span", null, h("i", { class: `s${colour}` }), `${name} ${shortNumber(newest[name] === undefined ? 0 : newest[name])}`)));
}
