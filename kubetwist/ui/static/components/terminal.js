// A terminal: xterm.js under the page's content security policy, with the page's colours.

import { h } from "../core/dom.js";
import { useStrictStyles } from "../core/strictstyles.js";
import { FitAddon } from "../vendor/xterm/addon-fit.mjs";
import { Terminal } from "../vendor/xterm/xterm.mjs";

// Bytes that are not drawn yet, above which further output is omitted.
const MAX_PENDING = 16 * 1024 * 1024;
const SCROLLBACK = 5000;
const NAMES = ["black", "red", "green", "yellow", "blue", "magenta", "cyan", "white"];

/** Return the colours of the page for the terminal. */
function pageTheme() {
  // A variable has a colour for each theme; the colour of an element is the one that is shown.
  const probe = document.createElement("span");
  document.body.append(probe);
  const color = (/** @type {string} */ name) => {
    probe.style.color = `var(--${name})`;
    return getComputedStyle(probe).color;
  };
  /** @type {Record<string, string>} */
  const theme = { background: color("paper"), foreground: color("ink"), cursor: color("accent"), cursorAccent: color("paper"), selectionBackground: color("chosen") };
  NAMES.forEach((name, index) => {
    theme[name] = color(`c${index}`);
    theme[`bright${name[0].toUpperCase()}${name.slice(1)}`] = color(`c${index + 8}`);
  });
  probe.remove();
  return theme;
}

export class TerminalView {
  /**
   * @param {string} omitted What is written instead of output that is omitted.
   * @param {(data: string) => void} typed Called with the input.
   * @param {(columns: number, rows: number) => void} resized
   */
  constructor(omitted, typed, resized) {
    this.omittedText = omitted;
    this.pending = 0;
    this.omits = false;
    this.restore = useStrictStyles();
    this.element = h("div", { class: "terminal-place" });
    this.terminal = new Terminal({
      theme: pageTheme(), scrollback: SCROLLBACK, cursorBlink: true, disableStdin: true,
      fontFamily: getComputedStyle(document.documentElement).getPropertyValue("--mono").trim(), fontSize: 13, minimumContrastRatio: 3,
      // Output may contain links to any address.
      linkHandler: { activate() {} },
    });
    this.terminal.onData(typed);
    this.terminal.onBinary(typed);
    this.terminal.onResize(({ cols, rows }) => resized(cols, rows));
    this.fit = new FitAddon();
    this.terminal.loadAddon(this.fit);
    this.observer = new ResizeObserver(() => this.adapt());
    this.scheme = matchMedia("(prefers-color-scheme: dark)");
    this.recolor = () => { this.terminal.options.theme = pageTheme(); };
    this.scheme.addEventListener("change", this.recolor);
    this.chosen = new MutationObserver(this.recolor);
    this.chosen.observe(document.documentElement, { attributes: true, attributeFilter: ["data-theme"] });
    // Tab is a key of shells; after Escape it moves the focus as elsewhere.
    let escaped = false;
    this.terminal.attachCustomKeyEventHandler((event) => {
      if (event.type !== "keydown" || event.key === "Shift") return true;
      const leaves = escaped && event.key === "Tab";
      escaped = event.key === "Escape";
      return !leaves;
    });
  }

  /** Show the terminal; its element must be in the document. @param {string} label */
  open(label) {
    this.terminal.open(this.element);
    this.terminal.textarea?.setAttribute("aria-label", label);
    this.adapt();
    this.observer.observe(this.element);
  }

  /** Use the available size. */
  adapt() {
    if (this.element.clientWidth && this.element.clientHeight) this.fit.fit();
  }

  close() {
    this.observer.disconnect();
    this.scheme.removeEventListener("change", this.recolor);
    this.chosen.disconnect();
    this.terminal.dispose();
    this.restore();
  }

  /** Allow or forbid input. @param {boolean} allowed */
  accept(allowed) {
    this.terminal.options.disableStdin = !allowed;
  }

  /** @param {Uint8Array | string} data */
  write(data) {
    if (this.pending > MAX_PENDING) {
      this.omits = true;
      return;
    }
    if (this.omits) {
      this.omits = false;
      this.terminal.write(`\r\n${this.omittedText}\r\n`);
    }
    this.pending += data.length;
    this.terminal.write(data, () => { this.pending -= data.length; });
  }
}
