// The lines of a log: cut from the received text, kept within limits, and searched.

import { AnsiParser } from "./ansi.js";

/** @typedef {import("./ansi.js").Span} Span */

/**
 * @typedef {object} LogLine
 * @property {string} text The line without control sequences.
 * @property {Span[] | null} spans Pieces with a look; null if the whole line has the default one.
 * @property {boolean} [separates] Whether it is no line of the log, but separates two runs.
 */

/** Characters after which a line is continued on a further one. */
export const MAX_LINE = 16_384;

/** Cuts text into lines. */
export class LineReader {
  constructor() {
    this.rest = "";
    this.parser = new AnsiParser();
  }

  /**
   * Return the lines that are complete.
   *
   * @param {string} text The next part of the log.
   * @returns {LogLine[]}
   */
  feed(text) {
    const pieces = (this.rest + text).split("\n");
    this.rest = pieces.pop() ?? "";
    const lines = pieces.flatMap((piece) => cut(piece).map((part) => this.read(part)));
    while (this.rest.length > MAX_LINE) {
      lines.push(this.read(this.rest.slice(0, MAX_LINE)));
      this.rest = this.rest.slice(MAX_LINE);
    }
    return lines;
  }

  /** Return the last line, which has no end. @returns {LogLine[]} */
  end() {
    const { rest } = this;
    this.rest = "";
    return rest ? [this.read(rest)] : [];
  }

  /** @param {string} line @returns {LogLine} */
  read(line) {
    const spans = this.parser.parse(line);
    const plain = spans.every(({ look, color, background }) => !look && !color && !background);
    return { text: spans.map(({ text }) => text).join(""), spans: plain ? null : spans };
  }
}

/** @param {string} line */
function cut(line) {
  if (line.length <= MAX_LINE) return [line];
  const parts = [];
  for (let start = 0; start < line.length; start += MAX_LINE) parts.push(line.slice(start, start + MAX_LINE));
  return parts;
}

/** The last items of a sequence, limited in number and size. @template T */
export class Tail {
  /**
   * @param {number} maxCount
   * @param {number} maxSize The sum of the sizes.
   * @param {(item: T) => number} sizeOf
   */
  constructor(maxCount, maxSize, sizeOf) {
    this.maxCount = maxCount;
    this.maxSize = maxSize;
    this.sizeOf = sizeOf;
    /** @type {T[]} */
    this.items = [];
    this.size = 0;
  }

  /** Add items; return the oldest ones, which are dropped for them. @param {T[]} added */
  push(added) {
    for (const item of added) { this.items.push(item); this.size += this.sizeOf(item); }
    let count = 0;
    while (this.items.length - count > this.maxCount || (this.size > this.maxSize && this.items.length - count > 1)) this.size -= this.sizeOf(this.items[count++]);
    return this.items.splice(0, count);
  }

  /** Remove and return all items. */
  take() {
    const taken = this.items;
    this.items = [];
    this.size = 0;
    return taken;
  }
}

/**
 * Cut pieces of a line where a text is found.
 *
 * @param {LogLine} line
 * @param {string} wanted In lower case; not empty.
 * @returns {(Span & { found: boolean })[]}
 */
export function markFound({ text, spans }, wanted) {
  /** @type {[number, number][]} */
  const places = [];
  const lower = lowered(text);
  for (let at = lower.indexOf(wanted); at >= 0; at = lower.indexOf(wanted, at + wanted.length)) places.push([at, at + wanted.length]);
  /** @type {(Span & { found: boolean })[]} */
  const pieces = [];
  let start = 0;
  for (const span of spans ?? [{ text, look: "" }]) {
    const end = start + span.text.length;
    let from = start;
    const add = (/** @type {number} */ until, /** @type {boolean} */ found) => {
      if (until > from) pieces.push({ ...span, text: text.slice(from, until), found });
      from = Math.max(from, until);
    };
    for (const [first, last] of places) {
      if (last <= start || first >= end) continue;
      add(Math.min(first, end), false);
      add(Math.min(last, end), true);
    }
    add(end, false);
    start = end;
  }
  return pieces;
}

/** Return a text in lower case with the same length, so that places in one are places in the other. @param {string} text */
export function lowered(text) {
  const lower = text.toLowerCase();
  return lower.length === text.length ? lower : text.replace(/[A-Z]/g, (letter) => letter.toLowerCase());
}
