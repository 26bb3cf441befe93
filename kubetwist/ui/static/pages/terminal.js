// A command in a container, with a terminal.

import { PodChoice } from "../components/podchoice.js";
import { TerminalView } from "../components/terminal.js";
import * as api from "../core/api.js";
import { h, loadStyle, problem, replace } from "../core/dom.js";
import { openSocket } from "../core/sockets.js";
import { closeMessage, ERROR, message, parseMessage, PROTOCOL, resizeMessage, resultOf, STDERR, STDIN, STDOUT } from "../lib/channels.js";
import { execPath } from "../lib/containers.js";
import { questionOf } from "../lib/resources.js";
import { wordsOf } from "../lib/shellwords.js";
import { texts } from "../lib/texts.js";

/** @typedef {import("../lib/types.js").Target} Target */
/** @typedef {import("../lib/types.js").View} View */

const t = texts.streams;
// Characters of input in one message; pasted text may be longer.
const MAX_INPUT = 16_384;

/** Show a terminal. Nothing is run before the user asks for it: an address alone must not run a command. @param {Target} target @param {HTMLElement} body @param {View} view */
export async function terminalTab(target, body, view) {
  const tab = new TerminalTab(target);
  view.close = () => tab.close();
  await Promise.all([loadStyle("streams"), loadStyle("../vendor/xterm/xterm")]);
  await tab.choice.read();
  if (tab.stop.signal.aborted) return;
  replace(body, tab.element);
  tab.connectButton.focus();
}

class TerminalTab {
  /** @param {Target} target */
  constructor(target) {
    this.target = target;
    this.stop = new AbortController();
    /** @type {WebSocket | null} */
    this.socket = null;
    /** @type {TerminalView | null} */
    this.terminal = null;
    this.choice = new PodChoice(target, this.stop.signal, () => {});
    this.command = h("input", { id: "command", value: "sh", spellcheck: false, autocomplete: "off" });
    this.connectButton = h("button", { type: "submit", class: "button main", id: "connect" }, t.connect);
    this.state = h("span", { class: "count", id: "terminal-state", role: "status" });
    this.messages = h("div", { class: "note", "aria-live": "polite", id: "terminal-messages" });
    this.place = h("div", { class: "terminal-frame" });
    this.form = h("form", { class: "bar tools", onsubmit: (/** @type {Event} */ event) => { event.preventDefault(); if (this.socket) this.disconnect(); else this.connect(); } },
      this.choice.element, h("label", null, t.command, this.command), this.connectButton, h("span", { class: "grow" }), this.state, h("span", { class: "quiet" }, t.leaveTerminal));
    this.element = h("div", { class: "main fills streams" }, this.form, this.messages, this.place);
  }

  close() {
    this.stop.abort();
    this.socket?.close();
    this.socket = null;
    this.terminal?.close();
  }

  /** Run the command. */
  connect() {
    const words = wordsOf(this.command.value);
    if (!words) { this.say(t.badCommand); return; }
    const { container, pod, path } = this.choice;
    this.terminal?.close();
    const terminal = (this.terminal = new TerminalView(t.outputOmitted, (data) => this.send(data), (columns, rows) => this.post(resizeMessage(columns, rows))));
    replace(this.place, terminal.element);
    replace(this.messages);
    terminal.open(t.terminalOf(container, pod.metadata.name));
    const socket = (this.socket = openSocket(execPath(path, container, words), PROTOCOL));
    let opened = false, result = "";
    const decoder = new TextDecoder();
    socket.onopen = () => {
      opened = true;
      this.post(resizeMessage(terminal.terminal.cols, terminal.terminal.rows));
      terminal.accept(true);
      terminal.terminal.focus();
      this.drawState();
    };
    socket.onmessage = (event) => {
      const received = parseMessage(event.data);
      if (!received || this.socket !== socket) return;
      if (received.channel === STDOUT || received.channel === STDERR) terminal.write(received.data);
      else if (received.channel === ERROR) result += decoder.decode(received.data, { stream: true });
    };
    socket.onclose = () => {
      if (this.socket !== socket) return;
      this.socket = null;
      terminal.accept(false);
      this.drawState();
      if (result) this.finish(result);
      else if (opened) this.say(t.interrupted);
      else this.explain(words);
    };
    this.drawState();
  }

  disconnect() {
    const { socket } = this;
    this.post(closeMessage(STDIN));
    this.socket = null;
    socket?.close();
    this.terminal?.accept(false);
    this.drawState();
    this.say(t.disconnected);
  }

  /** Send input. @param {string} data */
  send(data) {
    for (let start = 0; start < data.length; start += MAX_INPUT) this.post(message(STDIN, data.slice(start, start + MAX_INPUT)));
  }

  /** @param {Uint8Array<ArrayBuffer>} data */
  post(data) {
    if (this.socket?.readyState === WebSocket.OPEN) this.socket.send(data);
  }

  /** Show the result of the command. @param {string} text */
  finish(text) {
    const { code, message: reason } = resultOf(text);
    if (code === null) replace(this.messages, problem(new Error(t.failed(reason))));
    else this.say(t.exited(code));
    this.connectButton.focus();
  }

  /** Show why the server has refused the WebSocket: its response is not visible to scripts. @param {string[]} words */
  async explain(words) {
    const { path, container } = this.choice, { namespace } = this.target;
    const question = { ...questionOf("get", { group: "", resource: "pods", namespaced: true }, namespace, this.target.name), subresource: "exec" };
    try {
      // Without the header for an upgrade, the server answers with the reason before it runs anything.
      await api.ask(execPath(path, container, words), { signal: this.stop.signal, question });
      this.say(t.refused);
    } catch (error) {
      if (this.stop.signal.aborted) return;
      if (error.code === 400) this.say(t.refused);
      else replace(this.messages, problem(error));
    }
  }

  /** @param {string} text */
  say(text) {
    replace(this.messages, h("p", { class: "quiet" }, text));
  }

  drawState() {
    const open = this.socket?.readyState === WebSocket.OPEN;
    this.state.textContent = open ? t.connected : this.socket ? t.connecting : "";
    this.connectButton.textContent = this.socket ? t.disconnect : t.connect;
    this.connectButton.classList.toggle("main", !this.socket);
    for (const field of [this.command, this.choice.podField, this.choice.containerField]) field.disabled = Boolean(this.socket);
  }
}
