// The dialog of an action: what it needs, its requests, and their results.

import * as api from "../core/api.js";
import { button, h, loadStyle, openDialog, problem, replace } from "../core/dom.js";
import { attributesOf, httpText } from "../lib/actions.js";
import { forAll, kubectlLines } from "../lib/bulk.js";
import { equal } from "../lib/patch.js";
import { apiVersionOf, pathOf, questionOf } from "../lib/resources.js";
import { texts } from "../lib/texts.js";
import { ActionForm } from "./actionform.js";

/** @typedef {import("../lib/actionmodel.js").Action} Action */
/** @typedef {import("../lib/types.js").KubeObject} KubeObject */
/** @typedef {import("../lib/types.js").Resource} Resource */

/**
 * @typedef {object} Objective What an action is for.
 * @property {Action} action
 * @property {Resource} resource
 * @property {KubeObject[]} objects
 * @property {boolean} [partial] Whether the objects have only metadata.
 * @property {(object: KubeObject) => void} [succeeded]
 */

/** @typedef {{ object: KubeObject, line: HTMLElement, done: boolean }} Job */

const t = texts.actions, o = texts.operations;
// Requests at a time; browsers allow six connections of HTTP/1.1.
const CONCURRENCY = 6;
// Requests that are shown, and how often a request is repeated after a conflict.
const SHOWN = 20, ATTEMPTS = 5;

/** @param {Objective} objective */
export async function openAction(objective) {
  await loadStyle("actions");
  if (objective.action.dialog === "drain") (await import("./draindialog.js")).openDrain(objective);
  else new ActionDialog(objective).open();
}

/** @param {KubeObject} object */
const labelOf = ({ metadata }) => `${metadata.namespace ? `${metadata.namespace}/` : ""}${metadata.name}`;

class ActionDialog {
  /** @param {Objective} objective */
  constructor({ action, resource, objects, partial = false, succeeded = () => {} }) {
    this.action = action;
    this.resource = resource;
    this.objects = objects;
    this.partial = partial;
    this.succeeded = succeeded;
    /** Aborted when the dialog is closed. */
    this.stop = new AbortController();
    /** Aborted when no further requests shall be sent. @type {AbortController | null} */
    this.stopped = null;
    this.form = new ActionForm(() => this.draw());
    this.command = h("pre", { class: "value", id: "kubectl", tabindex: "0" });
    this.http = h("pre", { class: "value", id: "http", tabindex: "0" });
    this.messages = h("div", { "aria-live": "polite" });
    this.progress = h("div", { "aria-live": "polite" });
    this.results = h("ul", { class: "results", id: "results" });
    this.run = h("button", { type: "submit", class: `button ${action.danger ? "danger" : "main"}`, id: "run" }, action.submit ?? action.label);
    this.halt = button(o.stop, () => this.halted(), { id: "stop", hidden: true });
    this.leave = button(texts.cancel, () => this.dialog?.close(), { id: "leave-action" });
    /** @type {HTMLDialogElement | null} */
    this.dialog = null;
    /** The objects for which a request is sent. @type {KubeObject[] | undefined} */
    this.todo = undefined;
    /** Whether the requests have begun. */
    this.begun = false;
  }

  get many() { return this.objects.length > 1; }

  open() {
    const { action, objects, resource } = this;
    const title = this.many ? o.titleOfMany(action.label, objects.length, resource.resource) : `${action.label}: ${resource.kind} ${objects[0].metadata.name}`;
    const names = this.many ? h("details", { id: "objects" }, h("summary", null, o.objects(objects.length)), h("ul", { class: "results" }, objects.map((object) => h("li", null, labelOf(object))))) : null;
    this.inputs = h("div", null, names, this.form.element,
      h("details", { open: true }, h("summary", null, this.many ? o.asCommands : t.asKubectl), this.command), h("details", null, h("summary", null, this.many ? o.asRequests : t.asHTTP), this.http));
    this.dialog = openDialog(action.label, () => h("form", { class: "action", onsubmit: (/** @type {SubmitEvent} */ event) => { event.preventDefault(); this.send(); } },
      h("h1", null, title), this.inputs, this.progress, this.results, this.messages, h("div", { class: "row" }, this.leave, this.halt, this.run)));
    this.dialog.addEventListener("close", () => this.stop.abort());
    this.prepare();
  }

  /** Read what the action needs of the objects, and ask for its values. */
  async prepare() {
    if (this.partial && this.action.reads) {
      this.run.disabled = true;
      replace(this.progress, h("p", { class: "quiet" }, o.reading(this.objects.length)));
      /** @type {any[]} */
      const problems = [];
      const found = this.objects.map(() => /** @type {KubeObject | null} */ (null));
      await forAll(this.objects, async (object, index) => {
        try { found[index] = await this.read(object); } catch (error) { problems.push(error); }
      }, CONCURRENCY, this.stop.signal);
      if (this.stop.signal.aborted) return;
      const there = found.flatMap((object) => object ?? []), kept = there.filter((object) => this.action.offered?.(object) ?? true);
      const notes = [problems.length ? o.notRead(problems.length) : "", there.length > kept.length ? o.notNeeded(there.length - kept.length) : ""].filter(Boolean);
      replace(this.progress, notes.length ? h("p", { class: "quiet" }, notes.join(" ")) : null);
      replace(this.messages, problems.slice(0, 1).map(problem));
      if (!kept.length) { this.run.hidden = true; return; }
      // A dialog for many objects remains one, even if the action is left for one of them.
      this.todo = kept;
    }
    this.todo ??= this.objects;
    this.form.show(this.fields());
    this.draw();
    this.form.focus();
  }

  /** A dialog for many objects asks for what all have in common. */
  fields() { return this.action.fields?.(this.many && this.todo?.length === 1 ? [...this.todo, ...this.todo] : this.todo ?? this.objects) ?? []; }

  /** @param {KubeObject} object @returns {Promise<KubeObject>} The object as it is now; an APIError with code 404 if it is another one. */
  async read({ metadata }) {
    const { resource } = this, { namespace, name, uid } = metadata;
    const object = await api.json(pathOf(resource, namespace, name), { signal: this.stop.signal, question: questionOf("get", resource, namespace, name) });
    if (uid && object.metadata.uid !== uid) throw new api.APIError(404, {}, o.anotherObject(name));
    return { apiVersion: apiVersionOf(resource), kind: resource.kind, ...object };
  }

  /** Show the requests for the entered values. */
  draw() {
    const { action, resource, todo = [] } = this, { values } = this.form;
    const wrong = action.check?.(values, todo) ?? "";
    this.run.disabled = wrong !== "" || this.begun;
    const apparent = wrong === o.nothingChanged || wrong === o.keyMissing;
    replace(this.messages, wrong && !apparent ? h("p", { class: "bad", id: "invalid" }, wrong) : null);
    this.command.textContent = kubectlLines(action, resource, todo, values).join("\n");
    const shown = todo.slice(0, SHOWN).map((object) => httpText(action.request(resource, object, values, new Date())));
    if (todo.length > SHOWN) shown.push(o.moreRequests(todo.length - SHOWN));
    this.http.textContent = shown.join("\n\n");
  }

  async send() {
    this.begun = this.run.disabled = true;
    replace(this.messages);
    const { values } = this.form;
    if (!this.many) {
      const [object] = this.todo ?? [];
      try {
        const answer = await this.request(object, values);
        if (this.action.secret) { this.reveal(this.action.secret(await answer.json())); return; }
        this.succeeded(object);
        this.dialog?.close();
      } catch (error) {
        if (error.code === 409 && this.action.basis) await this.reload(object, error);
        else replace(this.messages, problem(error));
        this.begun = this.run.disabled = false;
      }
      return;
    }
    await this.sendAll(values);
  }

  /**
   * Send the request for one object. After a conflict, it is repeated while what it replaces is unchanged.
   *
   * @param {KubeObject} object
   * @param {import("../lib/actionmodel.js").Values} values
   */
  async request(object, values) {
    const { action, resource } = this;
    const { group, version, ...rest } = attributesOf(action, resource, object.metadata)[0], question = { ...rest, apiGroup: group };
    for (let attempt = 1; ; attempt++) {
      const { method, path, type, body } = action.request(resource, object, values, new Date());
      try {
        return await api.ask(path, { method, type, body: body === undefined ? undefined : JSON.stringify(body), question });
      } catch (error) {
        if (error.code !== 409 || !action.basis || attempt === ATTEMPTS) throw error;
        const now = await this.read(object);
        if (!this.many && !equal(action.basis(now) ?? null, action.basis(object) ?? null)) throw error;
        object = now;
      }
    }
  }

  /** Offer what has changed in the meantime. @param {KubeObject} object @param {any} error */
  async reload(object, error) {
    const again = button(o.loadCurrent, async () => {
      try {
        this.todo = [await this.read(object)];
        this.form.show(this.fields());
        this.draw();
      } catch (failed) { replace(this.messages, problem(failed)); }
    }, { id: "load-current" });
    replace(this.messages, problem(error), h("p", null, o.changedElsewhere), again);
  }

  /** @param {import("../lib/actionmodel.js").Values} values */
  async sendAll(values) {
    const stopped = this.stopped = new AbortController();
    /** @type {Job[]} */
    const jobs = (this.todo ?? []).map((object) => ({ object, done: false, line: h("li", null, labelOf(object)) }));
    const bar = h("progress", { max: jobs.length, value: 0 }), text = h("span");
    replace(this.results, jobs.map(({ line }) => line));
    replace(this.progress, h("p", { class: "row spread" }, bar, text));
    if (this.inputs) this.inputs.hidden = true;
    this.halt.hidden = false;
    this.halt.focus();
    this.run.hidden = this.leave.hidden = true;
    let done = 0, failed = 0;
    await forAll(jobs, async (job) => {
      try {
        await this.request(job.object, values);
        job.line.className = "good";
        job.line.append(`: ${o.sent}`);
        this.succeeded(job.object);
      } catch (error) {
        failed++;
        job.line.className = "bad";
        job.line.append(`: ${error.message}`);
      }
      job.done = true;
      bar.value = ++done;
      text.textContent = o.progress(done, jobs.length, failed);
    }, CONCURRENCY, AbortSignal.any([stopped.signal, this.stop.signal]));
    for (const { line, done: sent } of jobs) if (!sent) { line.className = "quiet"; line.append(`: ${o.notSent}`); }
    text.textContent = o.ended(done - failed, jobs.length, failed);
    this.halt.hidden = true;
    this.leave.hidden = false;
    this.leave.textContent = o.close;
    this.leave.focus();
  }

  halted() {
    this.stopped?.abort();
    this.halt.disabled = true;
  }

  /** Show a secret once; it is nowhere but in this dialog. @param {string} secret */
  reveal(secret) {
    const hidden = "••••••••", value = h("pre", { class: "value", id: "secret", tabindex: "0" }, hidden);
    const toggle = button(texts.showValue, () => {
      const shown = value.textContent === hidden;
      value.textContent = shown ? secret : hidden;
      toggle.textContent = shown ? texts.hideValue : texts.showValue;
    }, { id: "show-secret" });
    if (this.inputs) this.inputs.hidden = true;
    this.run.hidden = true;
    this.leave.textContent = o.close;
    replace(this.progress, h("p", null, o.shownOnce), value, h("div", { class: "row" }, toggle, button(texts.copy, () => navigator.clipboard.writeText(secret), { id: "copy-secret" })));
    this.leave.focus();
  }
}
