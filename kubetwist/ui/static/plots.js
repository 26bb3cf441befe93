// Plots of metrics from /metrics, beginning when the view is opened.

import * as api from "./api.js";
import { h, problem, replace, svg } from "./dom.js";

const INTERVAL = 3000, MAX_POINTS = 200, WIDTH = 400, HEIGHT = 150, LEFT = 44, BOTTOM = 18, TOP = 10, MAX_SERIES = 6;

/** Parse the text format; return a Map name -> [{labels, value}]. */
export function samples(text) {
  const found = new Map();
  for (const line of text.split("\n")) {
    const match = /^([a-zA-Z_:][\w:]*)(?:\{(.*)\})? (\S+)/.exec(line);
    if (!match) continue;
    const labels = {};
    for (const [, name, value] of (match[2] || "").matchAll(/(\w+)="((?:[^"\\]|\\.)*)"/g)) labels[name] = value;
    if (!found.has(match[1])) found.set(match[1], []);
    found.get(match[1]).push({ labels, value: match[3] === "+Inf" ? Infinity : Number(match[3]) });
  }
  return found;
}

const sum = (all, name, by, keep = () => true) => {
  const found = {};
  for (const { labels, value } of all.get(name) || []) if (keep(labels)) { const key = by(labels); found[key] = (found[key] || 0) + value; }
  return found;
};

/** Return the q-quantile of the observations between two scrapes of a histogram, by linear interpolation. */
export function quantile(q, before, after) {
  const bounds = Object.keys(after).map((bound) => [bound === "+Inf" ? Infinity : Number(bound), after[bound] - (before[bound] || 0)]).sort((a, b) => a[0] - b[0]);
  const total = bounds.length ? bounds[bounds.length - 1][1] : 0;
  if (!total) return null;
  let low = 0, below = 0;
  for (const [bound, count] of bounds) {
    if (count >= q * total) return bound === Infinity ? low : low + (bound - low) * ((q * total - below) / ((count - below) || 1));
    low = bound; below = count;
  }
  return low;
}

const short = (labels) => !["WATCH", "CONNECT"].includes(labels.verb);
const PLOTS = [
  { title: "Requests", unit: "/s", rate: true, read: (all) => sum(all, "apiserver_request_total", (labels) => labels.verb) },
  { title: "Errors", unit: "/s", rate: true, read: (all) => sum(all, "apiserver_request_total", (labels) => labels.code, (labels) => Number(labels.code) >= 400) },
  { title: "Latency", unit: "ms", note: "without watches", latency: true, read: (all) => sum(all, "apiserver_request_duration_seconds_bucket", (labels) => labels.le, short) },
  { title: "Requests in flight", unit: "", read: (all) => sum(all, "apiserver_current_inflight_requests", (labels) => (labels.request_kind || "all").replace("readOnly", "read-only")) },
  { title: "Watchers", unit: "", read: (all) => sum(all, "apiserver_longrunning_requests", (labels) => labels.resource || "other", (labels) => labels.verb === "WATCH") },
  { title: "Memory", unit: "MiB", read: (all) => scaled(sum(all, "process_resident_memory_bytes", () => "resident"), 1 / 1048576) },
  { title: "Processor", unit: "%", rate: true, read: (all) => scaled(sum(all, "process_cpu_seconds_total", () => "used"), 100) },
  { title: "Revisions", unit: "/s", rate: true, note: "stored writes", read: (all) => ({ stored: Math.max(0, ...(all.get("apiserver_watch_cache_resource_version") || all.get("watch_cache_resource_version") || [{ value: 0 }]).map((one) => one.value)) }) },
];

const scaled = (values, factor) => Object.fromEntries(Object.entries(values).map(([name, value]) => [name, value * factor]));
const format = (value) => (value === null ? "–" : value >= 100 ? value.toFixed(0) : Number.isInteger(value) ? String(value) : value >= 10 ? value.toFixed(1) : value.toFixed(2));

export function plotsView() {
  const stop = new AbortController();
  const note = h("div");
  const plots = PLOTS.map((plot) => ({ ...plot, points: [], before: null, area: h("div"), legend: h("div", { class: "legend" }) }));
  const element = h("div", { class: "main fills" }, h("div", { class: "bar" }, h("h1", null, "Plots"), h("span", { class: "kind" }, `from /metrics, every ${INTERVAL / 1000} s`)),
    h("div", { class: "page", tabindex: "0", role: "region", "aria-label": "Plots" }, note, h("div", { class: "plots" }, plots.map((plot) =>
      h("section", { class: "plot" }, h("h2", null, plot.title, h("small", null, [plot.unit.replace("/s", "per second"), plot.note].filter(Boolean).join(", "))), plot.area, plot.legend)))));
  let last = 0;
  const read = async () => {
    const text = await api.text("/metrics", { accept: "text/plain", signal: stop.signal, question: { verb: "get", path: "/metrics" } });
    const all = samples(text), now = performance.now(), seconds = (now - last) / 1000;
    for (const plot of plots) {
      const values = plot.read(all), before = plot.before;
      plot.before = values;
      let shown = values;
      if (plot.latency) {
        if (!before) continue;
        shown = { "p50": ms(quantile(0.5, before, values)), "p99": ms(quantile(0.99, before, values)) };
      } else if (plot.rate) {
        if (!before) continue;
        shown = Object.fromEntries(Object.entries(values).map(([name, value]) => [name, Math.max(0, value - (before[name] || 0)) / seconds]));
      }
      plot.points.push({ at: now, shown });
      if (plot.points.length > MAX_POINTS) plot.points.shift();
      draw(plot, now);
    }
    last = now;
    replace(note);
  };
  const ms = (value) => (value === null ? null : value * 1000);
  (async () => {
    while (!stop.signal.aborted) {
      try { await read(); } catch (error) {
        if (stop.signal.aborted) return;
        replace(note, problem(error));
        if (error.code === 401 || error.code === 403) return;
      }
      await new Promise((done) => setTimeout(done, plots[0].points.length > 1 ? INTERVAL : 1000));
    }
  })();
  return { element, title: "Plots", close: () => stop.abort() };
}

function draw(plot, now) {
  const totals = {};
  for (const { shown } of plot.points) for (const [name, value] of Object.entries(shown)) totals[name] = (totals[name] || 0) + (value || 0);
  // The series with the largest totals; a line keeps its colour while it is shown.
  const chosen = Object.entries(totals).sort((a, b) => b[1] - a[1]).slice(0, MAX_SERIES).map(([name]) => name);
  plot.colours ||= new Map();
  for (const name of [...plot.colours.keys()]) if (!chosen.includes(name)) plot.colours.delete(name);
  for (const name of chosen) {
    if (!plot.colours.has(name)) plot.colours.set(name, [0, 1, 2, 3, 4, 5].find((one) => ![...plot.colours.values()].includes(one)));
  }
  const span = Math.max(30000, now - plot.points[0].at);
  const highest = nice(Math.max(plot.rate ? 0.1 : 1, ...plot.points.flatMap(({ shown }) => chosen.map((name) => shown[name] || 0))));
  const x = (at) => LEFT + (1 - (now - at) / span) * (WIDTH - LEFT - 6);
  const y = (value) => TOP + (1 - value / highest) * (HEIGHT - TOP - BOTTOM);
  const rules = [0, highest / 2, highest].map((value) => [svg("line", { class: "rule", x1: LEFT, x2: WIDTH - 6, y1: y(value), y2: y(value) }),
    svg("text", { x: LEFT - 6, y: y(value) + 3, "text-anchor": "end" }, format(value))]);
  const lines = [...plot.colours].map(([name, colour]) => {
    const points = plot.points.filter(({ shown }) => shown[name] !== undefined && shown[name] !== null).map(({ at, shown }) => `${x(at).toFixed(1)} ${y(shown[name]).toFixed(1)}`);
    return points.length > 1 ? svg("path", { class: `s${colour}`, fill: "none", "stroke-width": 1.6, "stroke-linejoin": "round", d: `M${points.join("L")}` }) : null;
  });
  replace(plot.area, svg("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", "aria-label": plot.title }, rules, lines,
    svg("text", { x: LEFT, y: HEIGHT - 3 }, `${Math.round(span / 1000)} s ago`), svg("text", { x: WIDTH - 6, y: HEIGHT - 3, "text-anchor": "end" }, "now")));
  const newest = plot.points.at(-1).shown;
  replace(plot.legend, [...plot.colours].map(([name, colour]) => h("span", null, h("i", { class: `s${colour}` }), `${name} ${format(newest[name] === undefined ? 0 : newest[name])}`)));
}

function nice(value) {
  const power = 10 ** Math.floor(Math.log10(value));
  return [1, 2, 5, 10].map((one) => one * power).find((one) => one >= value * 0.999) || value;
}
