// Colours of log lines: the escape sequences for graphics (SGR) as data. Other control sequences are removed.

/**
 * @typedef {object} Span A piece of text with one look.
 * @property {string} text Without control characters.
 * @property {string} look Classes: "f1" and "b1" for the colours 0 to 15 of text and background, "bold", "dim", "italic",
 *   "underline", "strike"; "fpaper" and "bink" for the colours of the page, exchanged.
 * @property {string} [color] A colour of the text outside of the 16: "#rrggbb".
 * @property {string} [background] Likewise, of the background.
 */

/** @typedef {number | string | null} Color One of 16, or "#rrggbb"; null for the default. */

// CSI sequences; strings (OSC, DCS, SOS, PM, APC) up to their terminator or the end; other sequences; single characters.
const CONTROL = /\x1b\[([0-?]*)([ -/]*)([@-~]|$)|\x1b[\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\|$)|\x1b[ -/]*[0-~]|[\x00-\x08\x0a-\x1f\x7f-\x9f]/g;
const ANY_CONTROL = /[\x00-\x08\x0a-\x1f\x7f-\x9f]/;
const MAX_PARAMETERS = 32;
const STEPS = [0, 95, 135, 175, 215, 255];
/** @type {Record<number, "bold" | "dim" | "italic" | "underline" | "strike" | "inverse">} */
const SET = { 1: "bold", 2: "dim", 3: "italic", 4: "underline", 7: "inverse", 9: "strike", 21: "underline" };
/** @type {Record<number, ("bold" | "dim" | "italic" | "underline" | "strike" | "inverse")[]>} */
const UNSET = { 22: ["bold", "dim"], 23: ["italic"], 24: ["underline"], 27: ["inverse"], 29: ["strike"] };
const CLASSES = /** @type {const} */ (["bold", "dim", "italic", "underline", "strike"]);

const hex = (/** @type {number} */ value) => Math.max(0, Math.min(255, value | 0)).toString(16).padStart(2, "0");
const rgb = (/** @type {number[]} */ ...values) => `#${values.map(hex).join("")}`;

/** Return one of 256 colours; null if there is no such colour. @param {number} number @returns {Color} */
function indexed(number) {
  if (!(number >= 0 && number <= 255)) return null;
  if (number < 16) return number;
  if (number >= 232) return rgb(...Array(3).fill(8 + 10 * (number - 232)));
  const cube = number - 16;
  return rgb(STEPS[Math.floor(cube / 36)], STEPS[Math.floor(cube / 6) % 6], STEPS[cube % 6]);
}

/** Reads lines one after the other; a look continues on the next line, as in a terminal. */
export class AnsiParser {
  constructor() {
    this.reset();
  }

  /** Return to the default look. */
  reset() {
    this.bold = this.dim = this.italic = this.underline = this.strike = this.inverse = false;
    /** @type {Color} */
    this.text = null;
    /** @type {Color} */
    this.background = null;
  }

  /**
   * Return the pieces of a line; their texts together are the line without control sequences.
   *
   * @param {string} line
   * @returns {Span[]}
   */
  parse(line) {
    if (!ANY_CONTROL.test(line)) return line ? [this.span(line)] : [];
    /** @type {Span[]} */
    const spans = [];
    let end = 0;
    const add = (/** @type {number} */ until) => {
      if (until <= end) return;
      const next = this.span(line.slice(end, until)), last = spans.at(-1);
      if (last && last.look === next.look && last.color === next.color && last.background === next.background) last.text += next.text;
      else spans.push(next);
    };
    for (const match of line.matchAll(CONTROL)) {
      add(match.index);
      end = match.index + match[0].length;
      if (match[3] === "m" && !match[2]) this.apply(match[1]);
    }
    add(line.length);
    return spans;
  }

  /** @param {string} text @returns {Span} */
  span(text) {
    const look = CLASSES.filter((name) => this[name]).map(String);
    const { inverse } = this;
    const color = inverse ? this.background ?? "paper" : this.text, background = inverse ? this.text ?? "ink" : this.background;
    /** @type {Span} */
    const span = { text, look: "" };
    if (typeof color === "string" && color.startsWith("#")) span.color = color;
    else if (color !== null) look.push(`f${color}`);
    if (typeof background === "string" && background.startsWith("#")) span.background = background;
    else if (background !== null) look.push(`b${background}`);
    span.look = look.join(" ");
    return span;
  }

  /** Apply the parameters of an SGR sequence. @param {string} parameters */
  apply(parameters) {
    if (/[^0-9;:]/.test(parameters)) return;
    const codes = parameters.split(/[;:]/, MAX_PARAMETERS).map(Number);
    for (let index = 0; index < codes.length; index++) {
      const code = codes[index];
      if (code === 0) this.reset();
      else if (SET[code]) this[SET[code]] = true;
      else if (UNSET[code]) for (const name of UNSET[code]) this[name] = false;
      else if (code >= 30 && code <= 37) this.text = code - 30;
      else if (code >= 90 && code <= 97) this.text = code - 82;
      else if (code >= 40 && code <= 47) this.background = code - 40;
      else if (code >= 100 && code <= 107) this.background = code - 92;
      else if (code === 39) this.text = null;
      else if (code === 49) this.background = null;
      else if (code === 38 || code === 48) {
        /** @type {Color} */
        let color = null;
        if (codes[index + 1] === 5) { color = indexed(codes[index + 2]); index += 2; }
        else if (codes[index + 1] === 2) { color = rgb(codes[index + 2], codes[index + 3], codes[index + 4]); index += 4; }
        if (code === 38) this.text = color;
        else this.background = color;
      }
    }
  }
}
