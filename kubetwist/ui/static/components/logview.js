// The lines of a log: drawn in batches, in blocks of which the browser lays out only those in view.

import { h, replace } from "../core/dom.js";
import { lowered, markFound, Tail } from "../lib/loglines.js";
import { texts } from "../lib/texts.js";

/** @typedef {import("../lib/loglines.js").LogLine} LogLine */

export const MAX_LINES = 10_000;
export const MAX_CHARACTERS = 5_000_000;
const BLOCK = 100;
// Milliseconds between two batches: each of them costs a layout.
const INTERVAL = 100;
// Pixels from the end within which the log is followed.
const NEAR = 24;

/** @typedef {{ line: LogLine, element: HTMLElement }} Drawn */

const sizeOf = (/** @type {LogLine} */ { text }) => text.length + 1;

export class LogView {
  /** @param {() => void} changed Called after lines were drawn, and when following or searching changes. */
  constructor(changed) {
    this.changed = changed;
    /** Lines that are not drawn yet: until the next frame, or while the log is paused. @type {Tail<LogLine>} */
    this.pending = new Tail(MAX_LINES, MAX_CHARACTERS, sizeOf);
    /** @type {Tail<Drawn>} */
    this.drawn = new Tail(MAX_LINES, MAX_CHARACTERS, ({ line }) => sizeOf(line));
    /** The lines that were received and are no longer kept. */
    this.omitted = 0;
    this.following = true;
    this.wanted = "";
    /** The drawn lines with the wanted text, and the selected one. @type {Drawn[]} */
    this.found = [];
    /** @type {Drawn | null} */
    this.current = null;
    this.timer = 0;
    this.frame = 0;
    /** The state of the next batch. @type {"idle" | "scheduled" | "closed"} */
    this.next = "idle";
    this.drawnAt = -INTERVAL;
    this.top = 0;
    this.element = h("div", { class: "log wraps", tabindex: "0", role: "log", "aria-live": "off", onscroll: () => this.scrolled() });
  }

  close() {
    this.next = "closed";
    clearTimeout(this.timer);
    cancelAnimationFrame(this.frame);
  }

  /** Remove all lines. */
  clear() {
    this.pending.take();
    this.drawn.take();
    this.omitted = 0;
    this.found = [];
    this.current = null;
    replace(this.element);
    this.top = 0;
    this.follow();
  }

  /** @param {LogLine[]} lines */
  add(lines) {
    if (!lines.length || this.next === "closed") return;
    this.omitted += this.pending.push(lines).length;
    if (this.next === "scheduled") return;
    this.next = "scheduled";
    this.timer = setTimeout(() => { this.frame = requestAnimationFrame(() => this.drawNext()); }, Math.max(0, INTERVAL - (performance.now() - this.drawnAt)));
  }

  drawNext() {
    this.next = "idle";
    this.draw();
    this.drawnAt = performance.now();
  }

  /** The number of received lines that are not drawn, as the log is paused. */
  get waiting() {
    return this.following ? 0 : this.pending.items.length;
  }

  /** Draw the pending lines, unless the log is paused. */
  draw() {
    if (this.following) {
      this.drawPending();
      this.scrollToEnd();
    }
    this.changed();
  }

  /** Draw the last lines of a log that has ended. */
  finish() {
    if (this.next === "closed") return;
    this.drawPending();
    if (this.following) this.scrollToEnd();
    this.changed();
  }

  drawPending() {
    this.append(this.pending.take().map((line) => {
      const drawn = { line, element: h("div", { class: line.separates ? "line separates" : "line" }) };
      this.fill(drawn);
      return drawn;
    }));
  }

  /** @param {Drawn[]} added */
  append(added) {
    const removed = new Set(this.drawn.push(added));
    this.omitted += removed.size;
    if (removed.size) {
      for (const one of removed) one.element.remove();
      while (this.element.firstElementChild?.childElementCount === 0) this.element.firstElementChild.remove();
      this.found = this.found.filter((one) => !removed.has(one));
      if (this.current && removed.has(this.current)) this.current = null;
    }
    let block = this.element.lastElementChild;
    for (const drawn of added) {
      if (removed.has(drawn)) continue;
      if (!block || block.childElementCount >= BLOCK) {
        block = h("div", { class: "block" });
        this.element.append(block);
      }
      block.append(drawn.element);
    }
  }

  /** Fill a line, and record whether it has the wanted text. @param {Drawn} drawn */
  fill(drawn) {
    const { line, element } = drawn;
    const found = this.wanted !== "" && !line.separates && lowered(line.text).includes(this.wanted);
    if (found) this.found.push(drawn);
    element.classList.toggle("found", found);
    if (!found && !line.spans) { element.textContent = line.text || "\u200b"; return; }
    /** @type {(import("../lib/ansi.js").Span & { found?: boolean })[]} */
    const pieces = found ? markFound(line, this.wanted) : line.spans ?? [];
    replace(element, pieces.map((piece) => {
      if (!piece.look && !piece.color && !piece.background && !piece.found) return piece.text;
      const shown = h(piece.found ? "mark" : "span", { class: piece.look || null }, piece.text);
      if (piece.color) shown.style.color = piece.color;
      if (piece.background) shown.style.backgroundColor = piece.background;
      return shown;
    }));
  }

  // Search.

  /** @param {string} text */
  search(text) {
    const wanted = lowered(text);
    if (wanted === this.wanted) return;
    const before = new Set(this.found);
    this.wanted = wanted;
    this.found = [];
    this.current?.element.classList.remove("current");
    this.current = null;
    for (const drawn of this.drawn.items) if (before.has(drawn) || (wanted && lowered(drawn.line.text).includes(wanted))) this.fill(drawn);
    this.element.classList.toggle("searches", wanted !== "");
    if (this.following) this.scrollToEnd();
    this.changed();
  }

  /** Select the next line with the wanted text, or the previous one; the last one at first. @param {1 | -1} step */
  move(step) {
    const count = this.found.length;
    if (!count) return;
    const at = this.current ? this.found.indexOf(this.current) : step > 0 ? -1 : 0;
    this.pause();
    this.current?.element.classList.remove("current");
    this.current = this.found[(at + step + count) % count];
    this.current.element.classList.add("current");
    this.current.element.scrollIntoView({ block: "center" });
    this.top = this.element.scrollTop;
    this.changed();
  }

  /** The number of the selected line among those with the wanted text; 0 if none is selected. */
  get place() {
    return this.current ? this.found.indexOf(this.current) + 1 : 0;
  }

  // Following.

  pause() {
    this.following = false;
    this.changed();
  }

  follow() {
    this.following = true;
    this.draw();
  }

  scrollToEnd() {
    this.element.scrollTop = this.element.scrollHeight;
    this.top = this.element.scrollTop;
  }

  /** Pause when the user scrolls up, and follow again at the end. */
  scrolled() {
    const { scrollTop, scrollHeight, clientHeight } = this.element;
    const atEnd = scrollHeight - scrollTop - clientHeight < NEAR;
    const { top } = this;
    this.top = scrollTop;
    if (this.following && scrollTop < top && !atEnd) this.pause();
    else if (!this.following && scrollTop > top && atEnd) this.follow();
  }

  /** @returns {string} What is shown of the amount. */
  get amount() {
    const t = texts.streams, omitted = this.omitted;
    return t.lines(this.drawn.items.length) + (omitted ? `, ${t.omitted(omitted)}` : "");
  }
}
