// A plot over time: lines or stacked areas, with marks, values at the pointer, a legend, and a table of the data.

import { h, replace, svg } from "../core/dom.js";
import { areaPath, fitting, linePath, nearest, reduced, runs, shortNumber, stacked, ticks, timeTicks, unitOf } from "../lib/plots.js";
import { texts } from "../lib/texts.js";

/** @typedef {{ name: string, values: (number | null)[] }} Line */
/** @typedef {import("../lib/plots.js").Mark} Mark */
/** @typedef {import("../lib/plots.js").Quantity} Quantity */

/**
 * @typedef {object} Shown
 * @property {number[]} times
 * @property {number} from The begin of the axis, in seconds.
 * @property {number} to
 * @property {number} interval Seconds between two samples.
 * @property {Line[]} lines
 * @property {Mark[]} marks
 */

// Sizes in pixels, and the width of a character of a label.
const HEIGHT = 190, LEFT = 46, RIGHT = 8, TOP = 20, BOTTOM = 22, CHARACTER = 6;
const COLOURS = 8;

/** @param {number} time @param {boolean} [seconds] */
const clock = (time, seconds = false) => new Date(time * 1000).toLocaleTimeString([], { hour: "2-digit", minute: "2-digit", ...(seconds ? { second: "2-digit" } : {}), hour12: false });

/** @param {Mark} mark */
export const markText = ({ kind, text }) => [texts.charts.marks[kind] ?? kind, text].filter(Boolean).join(": ");

/** One plot. */
export class Chart {
  /**
   * @param {string} title
   * @param {Quantity} quantity
   * @param {object} [options]
   * @param {boolean} [options.stack] Whether the lines are stacked.
   * @param {import("../core/dom.js").Child} [options.control] An element beside the title.
   */
  constructor(title, quantity, { stack = false, control = null } = {}) {
    this.title = title;
    this.quantity = quantity;
    this.stack = stack;
    /** @type {Shown} */
    this.shown = { times: [], from: 0, to: 1, interval: 10, lines: [], marks: [] };
    /** The colour of each line, by its name. @type {Map<string, number>} */
    this.colours = new Map();
    /** @type {Set<string>} */
    this.hidden = new Set();
    this.cursor = -1;
    this.width = 400;
    this.unit = h("small");
    this.drawing = svg("svg", { class: "drawing", role: "img", tabindex: "0", height: HEIGHT,
      onpointermove: (/** @type {PointerEvent} */ event) => this.point(event), onpointerdown: (/** @type {PointerEvent} */ event) => this.point(event),
      onpointerleave: () => this.move(-1, false), onblur: () => this.move(-1, false), onkeydown: (/** @type {KeyboardEvent} */ event) => this.key(event) });
    this.tip = h("div", { class: "tip", hidden: true });
    this.spoken = h("div", { class: "spoken", "aria-live": "polite" });
    this.legend = h("div", { class: "legend", role: "group", "aria-label": texts.charts.legend(title) });
    this.body = h("div", { class: "wide-table" });
    this.table = h("details", { ontoggle: () => this.fillTable() }, h("summary", null, texts.charts.table), this.body);
    this.area = h("div", { class: "area" }, this.drawing, this.tip);
    this.element = h("section", { class: "chart", "aria-label": title }, h("div", { class: "head" }, h("h2", null, title, " ", this.unit), control), this.area, this.spoken, this.legend, this.table);
    this.observer = new ResizeObserver(() => this.resize());
    this.observer.observe(this.area);
  }

  close() { this.observer.disconnect(); }

  resize() {
    const width = Math.max(100, Math.round(this.area.clientWidth));
    if (width !== this.width) { this.width = width; this.draw(); }
  }

  /** @param {Shown} shown */
  update(shown) {
    const at = this.shown.times[this.cursor];
    this.shown = shown;
    this.cursor = this.cursor < 0 ? -1 : nearest(shown.times, at);
    const names = shown.lines.map((line) => line.name);
    for (const name of this.colours.keys()) if (!names.includes(name)) this.colours.delete(name);
    for (const name of names) {
      const used = new Set(this.colours.values());
      if (!this.colours.has(name)) this.colours.set(name, [...Array(COLOURS).keys()].find((one) => !used.has(one)) ?? this.colours.size % COLOURS);
    }
    this.draw();
    if (this.table.open) this.fillTable();
  }

  /** Return the lines that are not hidden. */
  lines() { return this.shown.lines.filter((line) => !this.hidden.has(line.name)); }

  /** @param {string} name */
  look(name) { return `c${this.colours.get(name) ?? 0}`; }

  /** @param {number} time */
  x(time) {
    const { from, to } = this.shown;
    return LEFT + ((time - from) / (to - from || 1)) * (this.width - LEFT - RIGHT);
  }

  draw() {
    const { times, from, to, interval, marks } = this.shown, lines = this.lines(), { width, drawing } = this;
    const tops = this.stack ? stacked(lines.map((line) => line.values)) : lines.map((line) => line.values);
    const maximum = Math.max(0, ...tops.flat().filter((value) => value !== null));
    this.scale = unitOf(this.quantity, maximum);
    const { factor, label } = this.scale;
    this.unit.textContent = label;
    const steps = ticks(maximum * factor), highest = steps[steps.length - 1];
    const y = (/** @type {number} */ value) => TOP + (1 - (value * factor) / highest) * (HEIGHT - TOP - BOTTOM);
    const rules = steps.map((step) => [svg("line", { class: "rule", x1: LEFT, x2: width - RIGHT, y1: y(step / factor), y2: y(step / factor) }),
      svg("text", { x: LEFT - 6, y: y(step / factor) + 3.5, "text-anchor": "end" }, shortNumber(step))]);
    const hours = timeTicks(from, to, Math.max(2, Math.floor((width - LEFT) / 80)), new Date(to * 1000).getTimezoneOffset() * 60).map((time) =>
      [svg("line", { class: "tick", x1: this.x(time), x2: this.x(time), y1: HEIGHT - BOTTOM, y2: HEIGHT - BOTTOM + 4 }),
        svg("text", { x: this.x(time), y: HEIGHT - 5, "text-anchor": this.x(time) > width - 24 ? "end" : "middle" }, clock(time, to - from < 180))]);
    const most = Math.max(30, width - LEFT);
    const paths = lines.map(({ name }, number) => {
      if (this.stack) {
        const upper = tops[number], lower = number ? tops[number - 1] : upper.map(() => 0), parts = runs(times, upper, interval);
        return svg("path", { class: `fill ${this.look(name)}`, d: areaPath(parts, (index) => this.x(times[index]), (index) => y(upper[index] ?? 0), (index) => y(lower[index] ?? 0)) });
      }
      const drawn = reduced(times, tops[number], most), parts = runs(drawn.times, drawn.values, interval * drawn.size);
      return svg("path", { class: `line ${this.look(name)}`, d: linePath(parts, (index) => this.x(drawn.times[index]), (index) => y(drawn.values[index] ?? 0)) });
    });
    const placed = marks.filter((mark) => mark.time >= from && mark.time <= to).map((mark) => ({ x: this.x(mark.time), text: texts.charts.marks[mark.kind] ?? mark.kind, mark })).sort((a, b) => a.x - b.x);
    const labels = fitting(placed.map((one) => ({ ...one, x: one.x + 3 + one.text.length * CHARACTER > width ? one.x - 3 - one.text.length * CHARACTER : one.x + 3 })), CHARACTER)
      .map(({ x, text }) => svg("text", { class: "mark", x, y: 12 }, text));
    const events = placed.map(({ x, mark }) => svg("line", { class: `mark ${mark.kind === "unready" ? "worse" : ""}`, x1: x, x2: x, y1: 4, y2: HEIGHT - BOTTOM }, svg("title", null, markText(mark))));
    drawing.setAttribute("viewBox", `0 0 ${width} ${HEIGHT}`);
    drawing.setAttribute("width", String(width));
    drawing.setAttribute("aria-label", texts.charts.description(this.title, lines.map(({ name, values }) => `${name} ${this.value(values.at(-1))}`).join(", ")));
    this.line = svg("line", { class: "cursor", y1: TOP, y2: HEIGHT - BOTTOM, visibility: "hidden" });
    replace(drawing, rules, hours, paths, events, labels, this.line);
    this.drawLegend();
    this.showCursor(false);
  }

  /** @param {number | null | undefined} value */
  value(value) {
    const { factor, label } = this.scale ?? unitOf(this.quantity, 0);
    return value === null || value === undefined ? shortNumber(null) : `${shortNumber(value * factor)}${label ? ` ${label}` : ""}`;
  }

  drawLegend() {
    const { lines } = this.shown, focused = document.activeElement, had = focused && this.legend.contains(focused) ? focused.getAttribute("data-name") : null;
    replace(this.legend, lines.map(({ name, values }) => h("button", { type: "button", "data-name": name, "aria-pressed": String(!this.hidden.has(name)), onclick: () => this.toggle(name) },
      h("i", { class: this.look(name) }), h("span", null, name), h("b", null, this.value(values.at(-1))))));
    if (had !== null) /** @type {HTMLElement | undefined} */ ([...this.legend.children].find((one) => one.getAttribute("data-name") === had))?.focus();
  }

  /** @param {string} name */
  toggle(name) {
    if (!this.hidden.delete(name)) this.hidden.add(name);
    this.draw();
    if (this.table.open) this.fillTable();
  }

  // Values at a time.

  /** @param {PointerEvent} event */
  point(event) {
    const box = this.drawing.getBoundingClientRect(), { from, to, times } = this.shown;
    const share = (event.clientX - box.left - LEFT) / (this.width - LEFT - RIGHT);
    this.move(nearest(times, from + Math.min(1, Math.max(0, share)) * (to - from)), false);
  }

  /** @param {KeyboardEvent} event */
  key(event) {
    const last = this.shown.times.length - 1, at = this.cursor < 0 ? last : this.cursor;
    const steps = event.shiftKey ? 10 : 1;
    /** @type {Record<string, number>} */
    const targets = { ArrowLeft: this.cursor < 0 ? last : Math.max(0, at - steps), ArrowRight: Math.min(last, at + steps), Home: 0, End: last, Escape: -1 };
    if (!Object.hasOwn(targets, event.key) || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    event.stopPropagation();
    this.move(targets[event.key], true);
  }

  /** @param {number} index @param {boolean} speak Whether the values are also read aloud. */
  move(index, speak) {
    this.cursor = index;
    this.showCursor(speak);
  }

  /** @param {boolean} speak */
  showCursor(speak) {
    const { times, interval, marks } = this.shown, time = times[this.cursor];
    this.tip.hidden = time === undefined;
    this.line?.setAttribute("visibility", time === undefined ? "hidden" : "visible");
    if (time === undefined) { this.spoken.textContent = ""; return; }
    const x = this.x(time), near = marks.filter((mark) => Math.abs(mark.time - time) <= interval);
    this.line?.setAttribute("x1", String(x));
    this.line?.setAttribute("x2", String(x));
    const values = this.lines().map(({ name, values: all }) => ({ name, text: this.value(all[this.cursor]) }));
    replace(this.tip, h("strong", null, clock(time, true)), values.map(({ name, text }) => h("div", null, h("i", { class: this.look(name) }), h("span", null, name), h("b", null, text))),
      near.map((mark) => h("div", { class: "event" }, `${clock(mark.time, true)} ${markText(mark)}`)));
    const room = this.width - this.tip.offsetWidth;
    this.tip.style.left = `${Math.max(0, Math.min(room, x > this.width / 2 ? x - this.tip.offsetWidth - 10 : x + 10))}px`;
    if (speak) this.spoken.textContent = [clock(time, true), ...values.map(({ name, text }) => `${name} ${text}`), ...near.map(markText)].join(", ");
  }

  fillTable() {
    if (!this.table.open) return;
    const { times } = this.shown, lines = this.lines();
    const rows = times.map((time, index) => h("tr", null, h("th", { scope: "row" }, clock(time, true)), lines.map(({ values }) => h("td", null, this.value(values[index]))))).reverse();
    replace(this.body, h("table", { class: "plain" }, h("caption", null, this.title), h("thead", null, h("tr", null, h("th", { scope: "col" }, texts.charts.time), lines.map(({ name }) => h("th", { scope: "col" }, name)))), h("tbody", null, rows)));
  }
}
