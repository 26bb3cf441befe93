// Plots of the server's metrics: the last hour at once, then live.

import { Chart, markText } from "../components/chart.js";
import * as api from "../core/api.js";
import { button, frame, h, loadStyle, problem, replace } from "../core/dom.js";
import { joined, largest, noHistory, since, summed } from "../lib/plots.js";
import { texts } from "../lib/texts.js";

/** @typedef {import("../components/chart.js").Line} Line */
/** @typedef {import("../lib/plots.js").History} History */
/** @typedef {import("../lib/plots.js").Series} Series */

/**
 * @typedef {object} Plot
 * @property {keyof typeof texts.charts.titles} id
 * @property {import("../lib/plots.js").Quantity} quantity
 * @property {boolean} [stack]
 * @property {(history: History) => [string, string][]} [choices] Values and texts; the first one is chosen at first.
 * @property {(history: History, choice: string) => Line[]} lines
 */

// Lines of a plot besides their rest, and the spans in seconds.
const MOST = 7, SPANS = { tenMinutes: 600, hour: 3600 };
// The shortest axis, in seconds, and the delay after the time at which a sample is due, in milliseconds.
const SHORTEST = 120, LATE = 700;

/** What is chosen remains when the view is left. @type {{ span: number, of: Record<string, string> }} */
const chosen = { span: SPANS.hour, of: {} };

/** @param {History} history @param {string} name */
const all = ({ series }, name) => series.filter((one) => one.name === name);
/** @param {History} history @param {string} name @param {string} label @returns {Line[]} */
const byLabel = (history, name, label) => all(history, name).map(({ labels, values }) => ({ name: labels[label] || texts.charts.rest, values }));
/** @param {History} history @param {string} name @param {string} title @returns {Line[]} */
const plain = (history, name, title) => all(history, name).map(({ values }) => ({ name: title, values }));
/** @param {Record<string, string>} labels */
const kindOf = ({ verb, resource }) => `${verb} ${resource}`;

/** Return the largest series by verb and resource, and the sum of the rest. @param {History} history @param {string} name @returns {Line[]} */
function byKind(history, name) {
  const series = all(history, name), top = largest(series.filter((one) => one.labels.verb), MOST), rest = series.filter((one) => !top.includes(one));
  const lines = top.map(({ labels, values }) => ({ name: kindOf(labels), values }));
  return rest.length ? [...lines, { name: texts.charts.rest, values: summed(rest, history.times.length) }] : lines;
}

/** Leave out series that are 0 all the time, unless all are. @param {Line[]} lines */
const used = (lines) => {
  const found = lines.filter((line) => line.values.some((value) => value));
  return found.length ? found : lines.slice(0, 1);
};

/** @param {History} history @param {string} name @returns {Line[]} */
const quantiles = (history, name) => all(history, name).map(({ labels, values }) => ({ name: texts.charts.quantiles[labels.quantile] ?? labels.quantile, values }));

const KINDS = () => /** @type {[string, string][]} */ ([["", texts.charts.byVerb], ["kind", texts.charts.byKind]]);

/** @type {Plot[]} */
const PLOTS = [
  { id: "requests", quantity: "rate", stack: true, choices: KINDS, lines: (history, choice) => used(choice ? byKind(history, "requests") : byLabel(history, "verbs", "verb")) },
  {
    id: "latency", quantity: "seconds",
    choices: (history) => [["", texts.charts.allRequests], ...largest(all(history, "requests").filter((one) => !["WATCH", "CONNECT"].includes(one.labels.verb)), 30).map(({ labels }) =>
      /** @type {[string, string]} */ ([JSON.stringify(labels), labels.verb ? kindOf(labels) : texts.charts.rest]))],
    lines: (history, choice) => {
      if (!choice) return quantiles(history, "latency");
      return [["request_p50", "0.5"], ["request_p99", "0.99"]].flatMap(([name, quantile]) =>
        all(history, name).filter(({ labels }) => JSON.stringify(labels) === choice).map(({ values }) => ({ name: texts.charts.quantiles[quantile], values })));
    },
  },
  {
    id: "errors", quantity: "rate", stack: true, choices: () => [["", texts.charts.byCode], ["kind", texts.charts.byKind]],
    lines: (history, choice) => used(choice ? byKind(history, "request_errors") : byLabel(history, "errors", "code")),
  },
  {
    id: "levels", quantity: "count", choices: () => [["executing", texts.charts.executing], ["waiting", texts.charts.waiting]],
    lines: (history, choice) => used(byLabel(history, choice || "executing", "level")),
  },
  { id: "longRunning", quantity: "count", lines: (history) => plain(history, "long_running", texts.charts.open) },
  { id: "loop", quantity: "seconds", lines: (history) => quantiles(history, "loop") },
  { id: "memory", quantity: "bytes", lines: (history) => plain(history, "memory", texts.charts.resident) },
  { id: "processor", quantity: "share", lines: (history) => plain(history, "cpu", texts.charts.used) },
  { id: "storage", quantity: "seconds", lines: (history) => quantiles(history, "storage") },
  { id: "writes", quantity: "rate", lines: (history) => [...plain(history, "writes", texts.charts.revisions), ...plain(history, "storage_requests", texts.charts.storageRequests)] },
  { id: "size", quantity: "bytes", lines: (history) => plain(history, "storage_size", texts.charts.database) },
  { id: "members", quantity: "count", lines: (history) => [...plain(history, "etcd_members", texts.charts.members), ...plain(history, "etcd_healthy", texts.charts.healthy)] },
];
/** Plots that are left out if the server has no values for them. */
const OPTIONAL = ["members", "size", "levels"];

/** Wait until the page is visible, or the signal is aborted. @param {AbortSignal} signal @returns {Promise<void>} */
const visible = (signal) => new Promise((done) => {
  const check = () => {
    if (document.visibilityState !== "visible" && !signal.aborted) return;
    document.removeEventListener("visibilitychange", check);
    done();
  };
  document.addEventListener("visibilitychange", check);
  signal.addEventListener("abort", check);
  check();
});

/** @param {Plot} plot @param {() => void} changed */
function makeChart(plot, changed) {
  const title = texts.charts.titles[plot.id];
  const select = plot.choices ? h("select", { "aria-label": texts.charts.choice(title), onchange: () => { chosen.of[plot.id] = select?.value ?? ""; changed(); } }) : null;
  return { plot, select, chart: new Chart(title, plot.quantity, { stack: plot.stack, control: select }) };
}

/** @param {ReturnType<typeof makeChart>} made @param {History} history */
function fillChoices({ plot, select }, history) {
  if (!select || !plot.choices) return "";
  const choices = plot.choices(history), current = chosen.of[plot.id] ?? "";
  if (current && !choices.some(([value]) => value === current)) choices.push([current, select.selectedOptions[0]?.textContent ?? current]);
  const text = JSON.stringify(choices);
  if (select.dataset.choices !== text) {
    select.dataset.choices = text;
    replace(select, choices.map(([value, name]) => h("option", { value }, name)));
    select.value = current;
    if (select.selectedIndex < 0) select.selectedIndex = 0;
  }
  return select.value;
}

/**
 * Return the view of all plots.
 *
 * @returns {Promise<import("../lib/types.js").View>}
 */
export async function plotsView() {
  await loadStyle("plots");
  const stop = new AbortController();
  let history = noHistory();
  const note = h("div"), events = h("ol", { class: "events" }), newest = h("span", { class: "kind" });
  const charts = PLOTS.map((plot) => makeChart(plot, () => draw()));
  const span = (/** @type {number} */ seconds, /** @type {string} */ text) => button(text, () => { chosen.span = seconds; draw(); }, { "data-span": seconds });
  const spans = [span(SPANS.tenMinutes, texts.charts.tenMinutes), span(SPANS.hour, texts.charts.hour)];
  const list = h("section", { class: "chart marks", "aria-label": texts.charts.eventsTitle }, h("h2", null, texts.charts.eventsTitle), events);
  const element = frame([h("h1", null, texts.plots), newest, h("span", { class: "grow" }), h("div", { class: "spans", role: "group", "aria-label": texts.charts.span }, spans)],
    h("div", { class: "page", tabindex: "0", role: "region", "aria-label": texts.plots }, note, h("div", { class: "charts" }, charts.map(({ chart }) => chart.element), list)));

  function draw() {
    for (const one of spans) one.setAttribute("aria-pressed", String(Number(one.dataset.span) === chosen.span));
    const to = history.times.at(-1);
    if (to === undefined) return;
    const begin = Math.min(history.times[0], ...history.marks.map((mark) => mark.time));
    const from = Math.min(to - SHORTEST, Math.max(to - chosen.span, begin));
    const part = since(history, from);
    for (const made of charts) {
      const lines = made.plot.lines(part, fillChoices(made, history));
      made.chart.element.hidden = !lines.length && OPTIONAL.includes(made.plot.id);
      made.chart.update({ times: part.times, from, to, interval: history.interval, lines, marks: part.marks });
    }
    newest.textContent = texts.charts.newest(new Date(to * 1000).toLocaleTimeString([], { hour12: false }));
    list.hidden = !part.marks.length;
    replace(events, [...part.marks].reverse().map((mark) => h("li", null, h("time", { datetime: new Date(mark.time * 1000).toISOString() }, new Date(mark.time * 1000).toLocaleTimeString([], { hour12: false })), " ", markText(mark))));
  }

  const read = async () => {
    const answer = await api.json(`/ui/history?since=${history.times.at(-1) ?? 0}`, { signal: stop.signal, question: { verb: "get", path: "/metrics" } });
    history = joined(history, answer);
    replace(note, history.times.length ? null : h("p", { class: "quiet" }, texts.charts.none));
    draw();
  };
  (async () => {
    while (!stop.signal.aborted) {
      await visible(stop.signal);
      if (stop.signal.aborted) return;
      try { await read(); } catch (error) {
        if (stop.signal.aborted) return;
        replace(note, problem(error));
        if ([401, 403, 404].includes(error.code)) return;
      }
      await api.pause(history.times.length > 1 ? history.interval * 1000 + LATE : 2000, stop.signal);
    }
  })();
  return { element, title: texts.plots, close: () => { stop.abort(); charts.forEach(({ chart }) => chart.close()); } };
}
