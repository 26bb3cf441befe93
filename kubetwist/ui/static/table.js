// A table of objects as `kubectl get` prints it: the server computes the rows, and only visible rows are elements.

import { age, h, problem, replace } from "./dom.js";
import { pathOf, questionOf, json, watch } from "./api.js";

const TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json";
const CHOSEN = "chosen-row";
const HEIGHT = 30;
const SPARE = 12;
const PAGE = 1000;
// Poll interval in milliseconds of resources without watch.
const POLL_INTERVAL = 5000;

const wait = (ms, signal) => new Promise((done) => {
  const timer = setTimeout(done, ms);
  signal.addEventListener("abort", () => { clearTimeout(timer); done(); }, { once: true });
});

/** The rows of a Table, kept up to date by a watch. */
export class Rows {
  constructor(resource, namespace, changed, selector = "") {
    this.selector = selector;
    this.resource = resource;
    this.namespace = namespace;
    this.changed = changed;
    this.rows = new Map();
    this.columns = [];
    this.state = "loading";
    this.error = null;
    this.reordered = true;
    this.touched = true;
    this.abort = new AbortController();
  }

  close() { this.abort.abort(); }

  async run() {
    const signal = this.abort.signal;
    let pause = 500;
    while (!signal.aborted) {
      try {
        const version = await this.list(signal);
        pause = 500;
        if (this.resource.verbs.includes("watch")) await this.follow(version, signal);
        else await wait(POLL_INTERVAL, signal);
      } catch (error) {
        if (signal.aborted) return;
        this.error = error;
        this.state = "failed";
        this.changed();
        if ([401, 403, 404, 405].includes(error.code)) return;
      }
      await wait(pause, signal);
      pause = Math.min(pause * 2, 15000);
    }
  }

  async list(signal) {
    const path = pathOf(this.resource, this.namespace);
    const question = questionOf("list", this.resource, this.namespace);
    const seen = new Set();
    let token = "", version = "";
    do {
      const query = new URLSearchParams({ limit: PAGE });
      if (this.selector) query.set("fieldSelector", this.selector);
      if (token) query.set("continue", token);
      const table = tableOf(await json(`${path}?${query}`, { accept: TABLE, signal, question }));
      this.columns = table.columnDefinitions;
      for (const row of table.rows || []) seen.add(this.take(row));
      version = table.metadata.resourceVersion;
      token = table.metadata.continue || "";
      this.changed();
    } while (token);
    for (const key of this.rows.keys()) if (!seen.has(key)) this.rows.delete(key);
    this.reordered = true;
    this.error = null;
    this.state = "live";
    this.changed();
    return version;
  }

  async follow(version, signal) {
    const path = pathOf(this.resource, this.namespace);
    const question = questionOf("watch", this.resource, this.namespace);
    for (;;) {
      const query = new URLSearchParams({ watch: "1", allowWatchBookmarks: "true", resourceVersion: version });
      if (this.selector) query.set("fieldSelector", this.selector);
      let some = false;
      for await (const event of watch(`${path}?${query}`, { accept: TABLE, signal, question })) {
        if (event.type === "ERROR") return;
        some = true;
        const table = tableOf(event.object);
        if (table.columnDefinitions && table.columnDefinitions.length) this.columns = table.columnDefinitions;
        for (const row of table.rows || []) {
          version = row.object.metadata.resourceVersion || version;
          if (event.type === "BOOKMARK") continue;
          if (event.type === "DELETED") { this.rows.delete(keyOf(row.object.metadata)); this.reordered = true; }
          else this.take(row, true);
        }
        this.changed();
      }
      if (!some) await wait(1000, signal);
      if (signal.aborted) return;
    }
  }

  take(row, live = false) {
    const meta = row.object.metadata;
    const key = keyOf(meta);
    const before = this.rows.get(key);
    const created = Date.parse(meta.creationTimestamp) || 0;
    if (!before) this.reordered = true;
    this.touched = true;
    // The age is incremented in the page only if the column shows the age of the object.
    const aged = this.columns.findIndex((column) => column.name === "Age");
    const ages = aged >= 0 && created && isAge(row.cells[aged], created) ? aged : -1;
    this.rows.set(key, {
      key, name: meta.name, namespace: meta.namespace || "", uid: meta.uid, cells: row.cells, created, ages,
      leaving: Boolean(meta.deletionTimestamp), flashed: live ? performance.now() : 0,
    });
    return key;
  }
}

const DURATION = /^(?:\d+[smhdy])+$/;
const COLLATOR = new Intl.Collator(undefined, { numeric: true });

const keyOf = (meta) => `${meta.namespace || ""}/${meta.name}`;

const UNITS = { s: 1, m: 60, h: 3600, d: 86400, y: 31536000 };

/** Return the approximate seconds of a rounded duration like "3h5m". */
function spelled(text) {
  let seconds = 0;
  for (const [, count, unit] of String(text).matchAll(/(\d+)([smhdy])/g)) seconds += count * UNITS[unit];
  return seconds;
}

/** Return whether a cell shows the age of its object; the clocks may differ by about a minute. */
function isAge(text, created) {
  const rounded = UNITS[String(text).at(-1)];
  return rounded !== undefined && Math.abs(spelled(text) - (Date.now() - created) / 1000) < rounded + 90;
}

/** Return a Table; for servers without Tables one with names and ages, as in kubectl. */
function tableOf(found) {
  if (found.kind === "Table") return found;
  const rows = (found.items || [found]).map((object) => ({ object, cells: [object.metadata.name, age(Date.parse(object.metadata.creationTimestamp))] }));
  return { columnDefinitions: [{ name: "Name", format: "name" }, { name: "Age" }], rows, metadata: found.metadata };
}

export class TableView {
  constructor(resource, namespace, open, selector = "") {
    this.resource = resource;
    this.open = open;
    this.filter = "";
    this.wide = false;
    this.sorted = null;
    this.selected = "";
    this.sought = "";
    this.visible = [];
    this.pending = false;
    this.pool = [];
    this.rows = new Rows(resource, namespace, () => this.later(), selector);
    this.spread = !namespace && resource.namespaced;
    this.columns = [];
    this.signature = "";
    this.group = h("colgroup");
    this.head = h("tr");
    this.top = h("tr", { "aria-hidden": "true" }, h("td"));
    this.bottom = h("tr", { "aria-hidden": "true" }, h("td"));
    this.body = h("tbody", null, this.top, this.bottom);
    this.table = h("table", {
      class: "grid", role: "grid", tabindex: "0", "aria-label": `${resource.resource}: arrows select, Enter opens`, onkeydown: (event) => this.key(event),
    }, this.group, h("thead", null, this.head), this.body);
    this.scroller = h("div", { class: "scroller", onscroll: () => this.later() }, this.table);
    this.note = h("div", { class: "note" });
    this.count = h("span", { class: "count", "aria-live": "polite" });
    this.element = h("div", { class: "tableview" }, this.note, this.scroller);
    this.resized = new ResizeObserver(() => this.later());
    this.resized.observe(this.scroller);
    this.ticking = setInterval(() => this.later(), 1000);
    this.rows.run();
  }

  close() {
    this.rows.close();
    this.resized.disconnect();
    clearInterval(this.ticking);
  }

  /** The view settings, which are restored in the next table of the same kind. */
  get look() { return { filter: this.filter, wide: this.wide, sorted: this.sorted, selected: this.selected }; }

  set look({ filter, wide, sorted, selected }) {
    Object.assign(this, { filter, wide, sorted: sorted || null, selected: selected || "", sought: selected || "" });
    this.later();
  }

  setFilter(text) { this.filter = text.toLowerCase(); this.rows.reordered = true; this.scroller.scrollTop = 0; this.later(); }
  setWide(wide) { this.wide = wide; this.signature = ""; this.later(); }

  later() {
    if (this.pending) return;
    this.pending = true;
    requestAnimationFrame(() => { this.pending = false; this.draw(); });
  }

  arrange() {
    let rows = [...this.rows.rows.values()];
    if (this.filter) {
      const words = this.filter.split(/\s+/).filter(Boolean);
      rows = rows.filter((row) => {
        const text = `${row.namespace} ${row.cells.join(" ")}`.toLowerCase();
        return words.every((word) => text.includes(word));
      });
    }
    const order = (a, b) => (a.key < b.key ? -1 : a.key > b.key ? 1 : 0);
    if (this.sorted) {
      const { index, down } = this.sorted;
      const turn = down ? -1 : 1;
      const value = (row) => {
        const found = index < 0 ? row.namespace : index === row.ages ? -row.created : row.cells[index] ?? "";
        return typeof found === "string" && DURATION.test(found) ? spelled(found) : found;
      };
      const worth = new Map(rows.map((row) => [row, value(row)]));
      rows.sort((a, b) => {
        const one = worth.get(a), other = worth.get(b);
        if (typeof one === "number" && typeof other === "number") return (one - other) * turn || order(a, b);
        return COLLATOR.compare(String(one), String(other)) * turn || order(a, b);
      });
    } else rows.sort(order);
    this.visible = rows;
  }

  headings() {
    const shown = this.rows.columns.map((column, index) => ({ ...column, index })).filter((column) => this.wide || !column.priority);
    if (this.spread) shown.unshift({ name: "Namespace", index: -1, description: "" });
    const sample = [...this.rows.rows.values()].slice(0, 2000);
    const widths = shown.map((column, place) => {
      let width = column.name.length * 1.3 + 1;
      for (const row of sample) width = Math.max(width, String((column.index < 0 ? row.namespace : row.cells[column.index]) ?? "").length);
      return Math.min(width, 64) + (place ? 3 : 5);
    });
    const signature = JSON.stringify([shown.map((column) => column.name), widths, this.sorted]);
    if (signature === this.signature) return;
    this.signature = signature;
    this.columns = shown;
    replace(this.group, widths.map((width, index) => {
      const column = h("col");
      column.style.width = index === widths.length - 1 ? "auto" : `calc(${width} * var(--ch))`;
      return column;
    }));
    this.table.style.minWidth = `calc(${widths.reduce((sum, one) => sum + one, 0)} * var(--ch))`;
    const focused = [...this.head.children].findIndex((cell) => cell.contains(document.activeElement));
    replace(this.head, shown.map((column) => {
      const sorted = this.sorted && this.sorted.index === column.index;
      return h("th", { scope: "col", title: column.description || null, "aria-sort": sorted ? (this.sorted.down ? "descending" : "ascending") : null },
        h("button", { type: "button", onclick: () => this.sort(column.index) },
          column.name, h("span", { class: "arrow" }, sorted ? (this.sorted.down ? "▼" : "▲") : "")));
    }));
    if (focused >= 0) this.head.children[focused]?.firstChild.focus({ preventScroll: true });
    this.top.firstChild.colSpan = this.bottom.firstChild.colSpan = shown.length || 1;
    this.pool.forEach((line) => line.element.remove());
    this.pool = [];
  }

  sort(index) {
    if (!this.sorted || this.sorted.index !== index) this.sorted = { index, down: false };
    else this.sorted = this.sorted.down ? null : { index, down: true };
    this.rows.reordered = true;
    this.later();
  }

  draw() {
    const source = this.rows;
    // Only what has changed is worth going through all rows for: this is done for each frame while one scrolls.
    if (source.reordered || (source.touched && (this.sorted || this.filter))) this.arrange();
    else if (source.touched) this.visible = this.visible.map((row) => source.rows.get(row.key) || row);
    if (source.columns.length && (source.touched || source.reordered || !this.signature)) this.headings();
    source.reordered = source.touched = false;
    const total = this.visible.length;
    if (this.sought && source.state === "live") this.seek();
    const first = Math.max(0, Math.floor(this.scroller.scrollTop / HEIGHT) - SPARE);
    const last = Math.min(total, first + Math.ceil(this.scroller.clientHeight / HEIGHT) + 2 * SPARE);
    this.top.firstChild.style.height = `${first * HEIGHT}px`;
    this.bottom.firstChild.style.height = `${(total - last) * HEIGHT}px`;
    while (this.pool.length > last - first) this.pool.pop().element.remove();
    while (this.pool.length < last - first) {
      const line = this.line();
      this.pool.push(line);
      this.bottom.before(line.element);
    }
    const now = Date.now(), beat = performance.now();
    for (let index = first; index < last; index++) this.show(this.pool[index - first], this.visible[index], index, now, beat);
    this.table.setAttribute("aria-rowcount", String(total + 1));
    // Rows that are not in sight are no elements, and nothing can be said of them.
    if (this.visible.slice(first, last).some((row) => row.key === this.selected)) this.table.setAttribute("aria-activedescendant", CHOSEN);
    else this.table.removeAttribute("aria-activedescendant");
    const all = source.rows.size;
    this.count.textContent = source.state === "loading" ? `${all || ""}…` : total === all ? `${all}` : `${total} of ${all}`;
    this.element.dataset.state = source.state;
    if (source.state === "failed") replace(this.note, problem(source.error));
    else if (source.state === "live" && !total) replace(this.note, h("p", { class: "empty" }, all ? "Nothing matches the filter." : `No ${this.resource.resource} here.`));
    else if (this.note.firstChild) replace(this.note);
  }

  /** Bring the row into sight that was chosen when the table was left. */
  seek() {
    const index = this.visible.findIndex((row) => row.key === this.sought), view = this.scroller;
    this.sought = "";
    if (index < 0) return;
    this.bottom.firstChild.style.height = `${this.visible.length * HEIGHT}px`;
    view.scrollTop = (index + 1) * HEIGHT - view.clientHeight / 2;
  }

  line() {
    const cells = this.columns.map(() => h("td"));
    const line = { element: null, cells, texts: cells.map(() => null), key: "" };
    line.link = h("a", { tabindex: "-1" });
    line.element = h("tr", { onclick: (event) => {
      if (event.ctrlKey || event.metaKey || event.shiftKey) return;
      event.preventDefault();
      if (String(getSelection())) return;
      this.selected = line.row.key;
      this.open(line.row);
    } }, cells);
    return line;
  }

  show(line, row, index, now, beat) {
    line.row = row;
    this.columns.forEach((column, place) => {
      const raw = column.index < 0 ? row.namespace : row.cells[column.index];
      const text = column.index >= 0 && column.index === row.ages ? age(row.created, now) : raw === null || raw === undefined ? "" : String(raw);
      if (line.texts[place] === text) return;
      line.texts[place] = text;
      const cell = line.cells[place];
      if (column.format === "name" || (column.index === 0 && column.name === "Name")) { line.link.textContent = text; if (line.link.parentNode !== cell) replace(cell, line.link); }
      else cell.textContent = text;
      cell.title = text.length > 24 ? text : "";
      cell.className = toneOf(text, column.name);
    });
    if (line.key !== row.key) { line.key = row.key; line.link.href = this.open(row, true); }
    const element = line.element;
    const chosen = row.key === this.selected;
    const classes = `${chosen ? "selected" : ""} ${row.leaving ? "leaving" : ""} ${row.flashed && beat - row.flashed < 1500 ? "fresh" : ""}`;
    if (element.className !== classes) element.className = classes;
    element.setAttribute("aria-rowindex", String(index + 2));
    element.setAttribute("aria-selected", String(chosen));
    if (chosen) element.id = CHOSEN; else element.removeAttribute("id");
  }

  /** Take the focus from the filter: select the first row if no visible row is selected, and open it on request. */
  enter(open) {
    this.draw();
    if (!this.visible.some((row) => row.key === this.selected)) this.selected = this.visible[0]?.key;
    const row = this.visible.find((one) => one.key === this.selected);
    this.table.focus();
    this.later();
    if (open && row) this.open(row);
  }

  key(event) {
    // The headings are buttons, with keys of their own.
    if (event.target !== this.table) return;
    const at = this.visible.findIndex((row) => row.key === this.selected);
    const page = Math.max(1, Math.floor(this.scroller.clientHeight / HEIGHT) - 2);
    const to = { ArrowDown: at + 1, j: at + 1, ArrowUp: at - 1, k: at - 1, PageDown: at + page, PageUp: at - page, Home: 0, End: this.visible.length - 1 }[event.key];
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (to !== undefined && this.visible.length) {
      event.preventDefault();
      const index = Math.max(0, Math.min(this.visible.length - 1, to));
      this.selected = this.visible[index].key;
      const y = index * HEIGHT, view = this.scroller;
      if (y < view.scrollTop) view.scrollTop = y;
      else if (y + 2.2 * HEIGHT > view.scrollTop + view.clientHeight) view.scrollTop = y + 2.2 * HEIGHT - view.clientHeight;
      this.later();
    } else if (event.key === "Enter" && at >= 0) {
      event.preventDefault();
      this.open(this.visible[at]);
    }
  }
}

const GOOD = /^(Running|Active|Bound|Ready|Complete|Completed|Succeeded|True|Available|Established)$/;
const BAD = /^(Failed|Error|CrashLoopBackOff|ImagePullBackOff|ErrImagePull|Evicted|NotReady|Lost|OOMKilled|Unknown|Warning)/;
const WAITING = /^(Pending|Terminating|ContainerCreating|Init:|PodInitializing|Released)/;

function toneOf(text, column) {
  if (!["Status", "Ready", "Available", "Phase", "Type", "State"].includes(column)) return "";
  return GOOD.test(text) ? "good" : BAD.test(text) ? "bad" : WAITING.test(text) ? "waiting" : "";
}
