// The log of a container, followed over a WebSocket.

import { LogView, MAX_LINES } from "../components/logview.js";
import { PodChoice } from "../components/podchoice.js";
import * as api from "../core/api.js";
import { button, h, loadStyle, problem, replace } from "../core/dom.js";
import { podChanges } from "../core/podchanges.js";
import { openSocket } from "../core/sockets.js";
import { containersOf, logPath, mayRestart } from "../lib/containers.js";
import { containerState } from "../lib/describe/pods.js";
import { LineReader } from "../lib/loglines.js";
import { questionOf } from "../lib/resources.js";
import { texts } from "../lib/texts.js";

/** @typedef {import("../lib/types.js").Target} Target */
/** @typedef {import("../lib/types.js").View} View */

const t = texts.streams;
const TAILS = ["100", "1000", String(MAX_LINES)];

/** Show the log of a pod, or of the pods of a workload. @param {Target} target @param {HTMLElement} body @param {View} view */
export async function logsTab(target, body, view) {
  const tab = new LogsTab(target);
  view.close = () => tab.close();
  view.filter = tab.searchField;
  await loadStyle("streams");
  replace(body, tab.element);
  await tab.start();
}

class LogsTab {
  /** @param {Target} target */
  constructor(target) {
    this.target = target;
    this.stop = new AbortController();
    /** @type {WebSocket | null} */
    this.socket = null;
    this.ended = false;
    /** Ends the wait for the next run of the container. */
    this.waiting = new AbortController();
    /** The number of restarts before the run whose log is shown. */
    this.restarts = 0;
    this.log = new LogView(() => this.drawState());
    this.choice = new PodChoice(target, this.stop.signal, () => this.connect());
    const again = () => this.connect();
    const box = (/** @type {string} */ id, /** @type {string} */ label, /** @type {() => void} */ onchange, checked = false) => {
      const field = h("input", { type: "checkbox", id, checked, onchange });
      return { field, label: h("label", null, field, label) };
    };
    this.previous = box("previous", t.previous, again);
    this.timestamps = box("timestamps", t.timestamps, again);
    const wrap = box("wrap", t.wrap, () => this.log.element.classList.toggle("wraps", wrap.field.checked), true);
    const only = box("only-found", t.onlyFound, () => this.log.element.classList.toggle("only-found", only.field.checked));
    this.tail = h("select", { id: "tail", onchange: again }, TAILS.map((count) => h("option", { value: count }, t.lastLines(count))));
    this.tail.value = TAILS[1];
    this.since = h("select", { id: "since", onchange: again }, t.times.map(([seconds, name]) => h("option", { value: seconds }, name)));
    this.searchField = h("input", { type: "search", id: "search-log", placeholder: t.search, "aria-label": t.search, spellcheck: false, autocomplete: "off",
      oninput: () => this.log.search(this.searchField.value), onkeydown: (/** @type {KeyboardEvent} */ event) => this.searchKey(event) });
    this.foundCount = h("span", { class: "count", id: "found", role: "status" });
    this.steps = [button("↑", () => this.log.move(-1), { "aria-label": t.previousMatch, title: t.previousMatch, id: "previous-match" }), button("↓", () => this.log.move(1), { "aria-label": t.nextMatch, title: t.nextMatch, id: "next-match" })];
    this.followButton = button(t.pauseLog, () => (this.ended ? this.connect() : this.log.following ? this.log.pause() : this.log.follow()), { id: "follow" });
    this.state = h("span", { class: "count", id: "log-state", role: "status" });
    this.messages = h("div", { class: "note", "aria-live": "polite" });
    this.element = h("div", { class: "main fills streams" },
      h("div", { class: "bar tools" }, this.choice.element, h("label", null, t.tail, this.tail), h("label", null, t.since, this.since), this.previous.label, this.timestamps.label, wrap.label,
        h("span", { class: "grow" }), button(t.download, () => this.download(), { id: "download-log" })),
      h("div", { class: "bar tools" }, this.searchField, this.foundCount, this.steps, only.label, h("span", { class: "grow" }), this.state, this.followButton),
      this.messages, this.log.element);
  }

  close() {
    this.stop.abort();
    this.disconnect();
    this.log.close();
  }

  async start() {
    await this.choice.read();
    this.connect();
  }

  /** @param {{ follow?: boolean, all?: boolean }} how */
  path({ follow = false, all = false }) {
    const previous = this.previous.field.checked;
    return logPath(this.choice.path, {
      container: this.choice.container, previous, timestamps: this.timestamps.field.checked, follow: follow && !previous,
      ...(all ? {} : { tailLines: this.tail.value, sinceSeconds: this.since.value }),
    });
  }

  disconnect() {
    const { socket } = this;
    this.waiting.abort();
    this.socket = null;
    socket?.close();
  }

  /** Read the log from the beginning. */
  connect() {
    if (this.stop.signal.aborted) return;
    this.log.clear();
    this.open(this.choice.pod);
  }

  /** Add the log of a run. @param {any} pod */
  open(pod) {
    this.disconnect();
    this.ended = false;
    this.restarts = containersOf(pod).find(({ name }) => name === this.choice.container)?.restarts ?? 0;
    replace(this.messages);
    this.log.element.setAttribute("aria-label", t.logOf(this.choice.container, this.choice.pod.metadata.name));
    const path = this.path({ follow: true });
    const socket = (this.socket = openSocket(path, "binary.k8s.io"));
    const decoder = new TextDecoder(), reader = new LineReader();
    let opened = false;
    socket.onopen = () => { opened = true; this.drawState(); };
    socket.onmessage = (event) => {
      if (this.socket === socket) this.log.add(reader.feed(decoder.decode(event.data, { stream: true })));
    };
    socket.onclose = (event) => {
      if (this.socket !== socket) return;
      this.socket = null;
      this.log.add([...reader.feed(decoder.decode()), ...reader.end()]);
      if (opened) this.end(event.code === 1000);
      else this.explain();
    };
    this.drawState();
  }

  /** Show why the server has refused the WebSocket: its response is not visible to scripts. */
  async explain() {
    this.ended = true;
    this.drawState();
    const { container, pod } = this.choice;
    const question = { ...questionOf("get", { group: "", resource: "pods", namespaced: true }, this.target.namespace, pod.metadata.name), subresource: "log" };
    try {
      await api.text(`${this.path({})}&limitBytes=1`, { signal: this.stop.signal, question });
      this.say(t.refused);
    } catch (error) {
      if (!this.stop.signal.aborted && container === this.choice.container) replace(this.messages, problem(error));
    }
  }

  /** @param {boolean} clean Whether the log is complete. */
  async end(clean) {
    this.ended = true;
    this.log.finish();
    if (!clean) { this.say(t.interrupted); return; }
    this.say(t.ended);
    if (!this.previous.field.checked) await this.waitForRun();
  }

  /** Follow the next run of the container when it starts. */
  async waitForRun() {
    const { container, pod: { metadata: { name, uid } } } = this.choice, { signal } = (this.waiting = new AbortController());
    try {
      for await (const pod of podChanges(this.target.namespace, name, signal)) {
        const found = pod.metadata.uid === uid ? containersOf(pod).find((one) => one.name === container) : null;
        if (signal.aborted) return;
        if (!found) break;
        if (found.state.running && found.restarts > this.restarts) {
          this.choice.update(pod);
          this.log.add([{ text: t.restarted(found.restarts, found.last.terminated ? containerState({ state: found.last }).text : ""), spans: null, separates: true }]);
          this.open(pod);
          return;
        }
        const again = mayRestart(pod, container), state = containerState(found).text;
        if (!found.state.running) this.say(again ? t.waitsForRun(state) : t.endedWith(state));
        if (!again) return;
      }
      if (!signal.aborted) this.say(texts.deleted);
    } catch (error) {
      if (!signal.aborted && error.code === 404) this.say(texts.deleted);
    }
  }

  /** @param {string} text */
  say(text) {
    replace(this.messages, h("p", { class: "quiet" }, text));
  }

  drawState() {
    const { log, ended, socket } = this;
    const state = ended ? "" : socket?.readyState !== WebSocket.OPEN ? t.connecting : this.previous.field.checked ? t.reading : !log.following ? t.paused : log.drawn.items.length ? t.following : t.emptyLog;
    this.state.textContent = [state, log.amount].filter(Boolean).join(", ");
    this.followButton.textContent = ended ? t.readAgain : log.following ? t.pauseLog : log.waiting ? t.newLines(log.waiting) : t.followLog;
    const searches = log.wanted !== "";
    this.foundCount.textContent = searches ? t.found(log.place, log.found.length) : "";
    for (const one of this.steps) one.disabled = !log.found.length;
  }

  /** @param {KeyboardEvent} event */
  searchKey(event) {
    if (event.key !== "Enter") return;
    event.preventDefault();
    this.log.move(event.shiftKey ? -1 : 1);
  }

  /** Save the whole log. */
  async download() {
    try {
      const response = await api.ask(this.path({ all: true }), { accept: "*/*", signal: this.stop.signal });
      const url = URL.createObjectURL(await response.blob());
      h("a", { href: url, download: `${this.choice.pod.metadata.name}-${this.choice.container}.log` }).click();
      setTimeout(() => URL.revokeObjectURL(url), 60_000);
    } catch (error) {
      if (!this.stop.signal.aborted) replace(this.messages, problem(error));
    }
  }
}
