// A table of objects as `kubectl get` prints it: the server computes the rows, and only visible rows are elements.

import { h, problem, replace } from "../core/dom.js";
import { LiveTable } from "../core/livetable.js";
import { age } from "../lib/durations.js";
import { filtered, sorted, toneOf } from "../lib/rows.js";
import { Selection } from "../lib/selection.js";
import { texts } from "../lib/texts.js";

/** @typedef {import("../lib/types.js").Column} Column */
/** @typedef {import("../lib/types.js").Resource} Resource */
/** @typedef {import("../lib/rows.js").Row} Row */
/** @typedef {import("../lib/rows.js").Sorting} Sorting */

const CHOSEN = "chosen-row";
// Height of a row in pixels, as in style.css.
const HEIGHT = 30;
// Number of rows beyond the visible ones, above and below.
const SPARE = 12;
// Rows from which the widths of columns are computed.
const SAMPLE = 2000;

/** @typedef {{ element: HTMLTableRowElement, cells: HTMLTableCellElement[], texts: (string | null)[], link: HTMLAnchorElement, tick: HTMLInputElement, key: string, row: Row | null }} Line */

/** @typedef {{ filter: string, wide: boolean, sorted: Sorting | null, selected: string }} Look The settings of a table. */

export class TableView {
  /**
   * @param {Resource} resource
   * @param {string} namespace
   * @param {(row: Row) => string} address Returns the address of the page of a row's object.
   * @param {import("../core/livetable.js").Selection} [selection]
   */
  constructor(resource, namespace, address, selection = {}) {
    this.resource = resource;
    this.address = address;
    this.filter = "";
    this.wide = false;
    /** @type {Sorting | null} */
    this.sorted = null;
    this.selected = "";
    this.sought = "";
    /** @type {Row[]} */
    this.visible = [];
    this.pending = false;
    /** The rows for actions; Escape clears it. */
    this.selection = new Selection();
    this.selectable = resource.verbs.includes("delete") || resource.verbs.includes("patch");
    /** @type {import("./selectionbar.js").SelectionBar | null} */
    this.actions = null;
    this.loading = false;
    this.tickAll = h("input", { type: "checkbox", "aria-label": texts.operations.selectAll, tabindex: "-1", onclick: () => this.selectAll() });
    /** @type {Line[]} */
    this.pool = [];
    this.namespace = namespace;
    this.rows = new LiveTable(resource, namespace, () => this.later(), selection);
    /** The name of the column to sort by, after "-" if descending, until the columns are known. */
    this.sortName = "";
    /** The names of the shown columns; empty for the default. @type {string[]} */
    this.chosenColumns = [];
    /** Called when the user has sorted. */
    this.arranged = () => {};
    /** Returns whether another element explains the error. @type {(error: any) => boolean} */
    this.explains = () => false;
    /** Whether the user has chosen what the server selects by. */
    this.narrowed = false;
    this.shownState = "";
    this.nextArrangement = 0;
    this.nextHeadings = 0;
    this.waiting = 0;
    this.spread = !namespace && resource.namespaced;
    /** @type {(Column & { index: number })[]} */
    this.columns = [];
    this.signature = "";
    this.group = h("colgroup");
    this.head = h("tr");
    // The space of the rows that are no elements.
    this.above = h("td");
    this.below = h("td");
    this.bottom = h("tr", { "aria-hidden": "true" }, this.below);
    this.body = h("tbody", null, h("tr", { "aria-hidden": "true" }, this.above), this.bottom);
    this.table = h("table", {
      class: "grid", role: "grid", tabindex: "0", "aria-multiselectable": this.selectable ? "true" : null, "aria-label": texts.tableLabel(resource.resource), onkeydown: (/** @type {KeyboardEvent} */ event) => this.key(event),
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
    clearTimeout(this.waiting);
  }

  /** The selected row, if it is there. */
  get current() { return this.rows.rows.get(this.selected); }

  /** The settings, which are restored in the next table of the same kind. @returns {Look} */
  get look() { return { filter: this.filter, wide: this.wide, sorted: this.sorted, selected: this.selected }; }

  set look({ filter, wide, sorted, selected }) {
    Object.assign(this, { filter, wide, sorted: sorted || null, selected: selected || "", sought: selected || "" });
    this.later();
  }

  /** Show other objects of the same kind. @param {import("../core/livetable.js").Selection} selection */
  select(selection) {
    const { columns } = this.rows;
    this.rows.close();
    this.rows = new LiveTable(this.resource, this.namespace, () => this.later(), selection);
    this.rows.columns = columns;
    this.rows.run();
    this.later();
  }

  /** The column by which the rows are sorted, after "-" if descending; "" without sorting. */
  get sorting() {
    if (!this.sorted) return this.sortName;
    const { index, down } = this.sorted, name = index < 0 ? texts.namespace : this.rows.columns[index]?.name ?? "";
    return name && `${down ? "-" : ""}${name}`;
  }

  /** Sort by the column of that name, as soon as the columns are known. */
  resolveSorting() {
    const down = this.sortName.startsWith("-"), name = this.sortName.slice(down ? 1 : 0);
    const index = this.spread && name === texts.namespace ? -1 : this.rows.columns.findIndex((column) => column.name === name);
    this.sortName = "";
    if (index < 0 && name !== texts.namespace) return;
    this.sorted = { index, down };
    this.reorder();
  }

  /** Arrange all rows in the next frame. */
  reorder() {
    this.rows.reordered = true;
    this.nextArrangement = this.nextHeadings = 0;
    this.later();
  }

  /** Show the columns of these names; the default ones if there are none. @param {string[]} names */
  setColumns(names) { this.chosenColumns = names; this.signature = ""; this.later(); }
  /** @param {string} text */
  setFilter(text) { this.filter = text.toLowerCase(); this.reorder(); this.scroller.scrollTop = 0; }
  /** @param {boolean} wide */
  setWide(wide) { this.wide = wide; this.signature = ""; this.later(); }

  /** Draw in the next frame. */
  later() {
    if (this.pending) return;
    this.pending = true;
    requestAnimationFrame(() => { this.pending = false; this.draw(); });
  }

  arrange() { this.visible = sorted(filtered([...this.rows.rows.values()], this.filter), this.sorted); }

  headings() {
    const shown = this.rows.columns.map((column, index) => ({ ...column, index })).filter((column) => (this.chosenColumns.length ? this.chosenColumns.includes(column.name) : this.wide || !column.priority));
    if (this.spread) shown.unshift({ name: texts.namespace, index: -1, description: "" });
    /** @type {Row[]} */
    const sample = [];
    for (const row of this.rows.rows.values()) if (sample.push(row) === SAMPLE) break;
    const widths = shown.map((column, place) => {
      let width = column.name.length * 1.3 + 1;
      for (const row of sample) width = Math.max(width, String((column.index < 0 ? row.namespace : row.cells[column.index]) ?? "").length);
      return Math.min(width, 64) + (place ? 3 : 5);
    });
    const signature = JSON.stringify([shown.map((column) => column.name), widths, this.sorted]);
    if (signature === this.signature) return;
    this.signature = signature;
    this.columns = shown;
    replace(this.group, this.selectable ? h("col", { class: "tick" }) : null, widths.map((width, index) => {
      const column = h("col");
      column.style.width = index === widths.length - 1 ? "auto" : `calc(${width} * var(--ch))`;
      return column;
    }));
    this.table.style.minWidth = `calc(${widths.reduce((sum, one) => sum + one, 0)} * var(--ch))`;
    const focused = [...this.head.children].findIndex((cell) => cell.contains(document.activeElement));
    replace(this.head, this.selectable ? h("th", { class: "tick" }, this.tickAll) : null, shown.map((column) => {
      const sorted = this.sorted?.index === column.index ? this.sorted : null;
      return h("th", { scope: "col", title: column.description || null, "aria-sort": sorted ? (sorted.down ? "descending" : "ascending") : null },
        h("button", { type: "button", onclick: () => this.sort(column.index) },
          column.name, h("span", { class: "arrow" }, sorted ? (sorted.down ? "▼" : "▲") : "")));
    }));
    if (focused >= 0) this.head.children[focused]?.querySelector("button")?.focus({ preventScroll: true });
    this.above.colSpan = this.below.colSpan = shown.length + Number(this.selectable) || 1;
    this.pool.forEach((line) => line.element.remove());
    this.pool = [];
  }

  /** Sort by a cell: ascending, descending, not at all. @param {number} index */
  sort(index) {
    if (!this.sorted || this.sorted.index !== index) this.sorted = { index, down: false };
    else this.sorted = this.sorted.down ? null : { index, down: true };
    this.reorder();
    this.arranged();
  }

  draw() {
    const source = this.rows;
    if (this.sortName && source.columns.length) this.resolveSorting();
    this.arrangeIfDue(performance.now());
    const total = this.visible.length;
    if (this.sought && source.state === "live") this.seek();
    const first = Math.max(0, Math.floor(this.scroller.scrollTop / HEIGHT) - SPARE);
    const last = Math.min(total, first + Math.ceil(this.scroller.clientHeight / HEIGHT) + 2 * SPARE);
    this.above.style.height = `${first * HEIGHT}px`;
    this.below.style.height = `${(total - last) * HEIGHT}px`;
    while (this.pool.length > last - first) this.pool.pop()?.element.remove();
    while (this.pool.length < last - first) {
      const line = this.line();
      this.pool.push(line);
      this.bottom.before(line.element);
    }
    const now = Date.now(), beat = performance.now();
    for (let index = first; index < last; index++) this.show(this.pool[index - first], this.visible[index], index, now, beat);
    this.table.setAttribute("aria-rowcount", String(total + 1));
    // Rows that are not in sight are no elements.
    if (this.visible.slice(first, last).some((row) => row.key === this.selected)) this.table.setAttribute("aria-activedescendant", CHOSEN);
    else this.table.removeAttribute("aria-activedescendant");
    this.showSelection();
    const all = source.rows.size;
    this.count.textContent = source.state === "loading" ? `${all || ""}…` : total === all ? `${all}` : texts.someOf(total, all);
    this.element.dataset.state = source.state;
    if (source.state === "failed") replace(this.note, this.explains(source.error) ? null : problem(source.error));
    else if (source.state === "live" && !total) replace(this.note, h("p", { class: "empty" }, all || this.narrowed ? texts.nothingMatches : texts.noObjects(this.resource.resource)));
    else if (this.note.firstChild) replace(this.note);
  }

  /**
   * Arrange rows that have changed: the more there are, the less often. Only changes are worth going through all rows for, as this
   * is called for each frame while one scrolls.
   *
   * @param {number} now
   */
  arrangeIfDue(now) {
    const source = this.rows;
    let { touched } = source;
    if (source.reordered || (touched && (this.sorted || this.filter))) {
      const wait = source.state === this.shownState ? this.nextArrangement - now : 0;
      if (wait > 0) {
        source.reordered = true;
        clearTimeout(this.waiting);
        this.waiting = setTimeout(() => this.later(), wait);
      } else {
        this.arrange();
        if (this.selection.size && source.state === "live" && source.reordered) this.selection.prune(source.rows);
        source.reordered = false;
        touched = true;
        this.shownState = source.state;
        this.nextArrangement = now + Math.min(1000, source.rows.size / 50);
      }
    }
    source.touched = false;
    if (!source.columns.length || (this.signature && (!touched || now < this.nextHeadings))) return;
    this.headings();
    this.nextHeadings = now + (source.rows.size > SAMPLE / 2 ? 1000 : 0);
  }

  /** Bring the row into sight that was chosen when the table was left. */
  seek() {
    const index = this.visible.findIndex((row) => row.key === this.sought), view = this.scroller;
    this.sought = "";
    if (index < 0) return;
    this.below.style.height = `${this.visible.length * HEIGHT}px`;
    view.scrollTop = (index + 1) * HEIGHT - view.clientHeight / 2;
  }

  /** @returns {Line} */
  line() {
    const cells = this.columns.map(() => h("td"));
    const tick = h("input", { type: "checkbox", tabindex: "-1" });
    const opened = (/** @type {MouseEvent} */ event) => {
      if (line.row && this.selectable && this.clicked(event, line.row)) return;
      if (event.ctrlKey || event.metaKey || event.shiftKey) return;
      event.preventDefault();
      if (String(getSelection()) || !line.row) return;
      this.selected = line.row.key;
      this.open(line.row);
    };
    /** @type {Line} */
    const line = { element: h("tr", { onclick: opened }, this.selectable ? h("td", { class: "tick" }, tick) : null, cells), cells, texts: cells.map(() => null), link: h("a", { tabindex: "-1" }), tick, key: "", row: null };
    return line;
  }

  /** @param {Row} row */
  open(row) { location.hash = this.address(row); }

  /** @param {Line} line @param {Row} row @param {number} index @param {number} now @param {number} beat */
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
    if (line.key !== row.key) { line.key = row.key; line.link.href = this.address(row); line.tick.setAttribute("aria-label", texts.operations.selectRow(row.name)); }
    const element = line.element;
    const chosen = row.key === this.selected, ticked = this.selection.has(row.key);
    line.tick.checked = ticked;
    const classes = `${chosen ? "selected" : ""} ${ticked ? "ticked" : ""} ${row.leaving ? "leaving" : ""} ${row.flashed && beat - row.flashed < 1500 ? "fresh" : ""}`;
    if (element.className !== classes) element.className = classes;
    element.setAttribute("aria-rowindex", String(index + 2));
    element.setAttribute("aria-selected", String(this.selection.size ? ticked : chosen));
    if (chosen) element.id = CHOSEN; else element.removeAttribute("id");
  }

  /** Take the focus from the filter: select the first row if no visible row is selected, and open it on request. @param {boolean} open */
  enter(open) {
    this.draw();
    if (!this.visible.some((row) => row.key === this.selected)) this.selected = this.visible[0]?.key ?? "";
    const row = this.visible.find((one) => one.key === this.selected);
    this.table.focus();
    this.later();
    if (open && row) this.open(row);
  }

  /** @param {KeyboardEvent} event */
  key(event) {
    // The headings are buttons, with keys of their own.
    if (event.target !== this.table || this.selectionKey(event)) return;
    const at = this.visible.findIndex((row) => row.key === this.selected);
    const page = Math.max(1, Math.floor(this.scroller.clientHeight / HEIGHT) - 2);
    /** @type {Record<string, number>} */
    const moves = { ArrowDown: at + 1, j: at + 1, ArrowUp: at - 1, k: at - 1, PageDown: at + page, PageUp: at - page, Home: 0, End: this.visible.length - 1 };
    const to = moves[event.key];
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (to !== undefined && this.visible.length) {
      event.preventDefault();
      const index = Math.max(0, Math.min(this.visible.length - 1, to));
      this.selected = this.visible[index].key;
      if (event.shiftKey && this.selectable) this.extend(index, at);
      else this.selection.begin(this.selected);
      const y = index * HEIGHT, view = this.scroller;
      if (y < view.scrollTop) view.scrollTop = y;
      else if (y + 2.2 * HEIGHT > view.scrollTop + view.clientHeight) view.scrollTop = y + 2.2 * HEIGHT - view.clientHeight;
      this.later();
    } else if (event.key === "Enter" && at >= 0) {
      event.preventDefault();
      this.open(this.visible[at]);
    }
  }
  // The selection.

  /** Select or deselect a clicked row; return whether the click was for that. @param {MouseEvent} event @param {Row} row */
  clicked(event, row) {
    const target = /** @type {HTMLElement} */ (event.target), own = target.closest(".tick") !== null;
    if (!own && !event.shiftKey && (!(event.ctrlKey || event.metaKey) || target.closest("a"))) return false;
    // A text that a range of rows contains is not selected with them.
    if (event.shiftKey) { event.preventDefault(); getSelection()?.removeAllRanges(); }
    this.selected = row.key;
    if (event.shiftKey) this.selection.extend(this.visible, this.visible.indexOf(row));
    else this.selection.toggle(row);
    this.table.focus({ preventScroll: true });
    this.later();
    return true;
  }

  /** Extend the range to a row; it begins where the cursor was. @param {number} to @param {number} from */
  extend(to, from) {
    if (!this.selection.anchor && from >= 0) this.selection.begin(this.visible[from].key);
    this.selection.extend(this.visible, to);
  }

  /** Select all visible rows, or none if they are. */
  selectAll() {
    if (this.visible.every(({ key }) => this.selection.has(key))) this.selection.remove(this.visible);
    else this.selection.add(this.visible);
    this.later();
  }

  /** Return whether a key was for the selection. @param {KeyboardEvent} event */
  selectionKey(event) {
    if (!this.selectable) return false;
    const control = event.ctrlKey || event.metaKey, row = this.visible.find(({ key }) => key === this.selected);
    if (control && event.key === "a") this.selection.add(this.visible);
    else if (!control && !event.altKey && (event.key === "x" || event.key === " ")) { if (row) this.selection.toggle(row); }
    else if (event.key === "Escape" && this.selection.size) { this.selection.clear(); event.stopPropagation(); }
    else return false;
    event.preventDefault();
    this.later();
    return true;
  }

  /** Show how many rows are selected, and the actions on them. */
  showSelection() {
    const { selection } = this, { rows } = this.rows;
    const visible = selection.size ? this.visible.filter(({ key }) => selection.has(key)).length : 0;
    this.tickAll.checked = visible > 0 && visible === this.visible.length;
    this.tickAll.indeterminate = visible > 0 && visible < this.visible.length;
    if (!selection.size) {
      if (this.actions) this.actions.element.hidden = true;
      return;
    }
    if (!this.actions) { this.loadActions(); return; }
    this.actions.element.hidden = false;
    this.actions.update([...selection.chosen.keys()].flatMap((key) => rows.get(key) ?? []), selection.size - visible);
  }

  /** Load the bar with the actions, once. */
  async loadActions() {
    if (this.loading) return;
    this.loading = true;
    const { SelectionBar } = await import("./selectionbar.js");
    this.actions = new SelectionBar(this.resource, () => { this.selection.clear(); this.table.focus(); this.later(); }, (uids) => {
      this.selection.remove([...this.rows.rows.values()].filter(({ uid }) => uids.has(uid)));
      this.later();
    });
    this.element.append(this.actions.element);
    this.later();
  }
}
