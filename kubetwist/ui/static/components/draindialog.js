// The dialog of a drain: its pods, what has to be confirmed, and its progress.

import * as api from "../core/api.js";
import { button, h, openDialog, problem, replace } from "../core/dom.js";
import { httpText } from "../lib/actions.js";
import { RETRY_SECONDS, drainCommand, evictAll, evictionOf, needsOf, planOf } from "../lib/drain.js";
import { questionOf } from "../lib/resources.js";
import { commandLine } from "../lib/shellwords.js";
import { texts } from "../lib/texts.js";
import { ActionForm } from "./actionform.js";

/** @typedef {import("../lib/drain.js").PodPlan} PodPlan */
/** @typedef {import("../lib/types.js").KubeObject} KubeObject */
/** @typedef {{ node: KubeObject, plans: PodPlan[] }} NodePlan */

const t = texts.actions, o = texts.operations;
const METADATA = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io,application/json";
const SHOWN = 20;

/** @param {string} node */
const podsOn = (node) => `/api/v1/pods?${new URLSearchParams({ fieldSelector: `spec.nodeName=${node}` })}`;

/** @param {PodPlan} plan */
function stateText({ state, stays, needs, finished, message }) {
  if (stays) return o.drainReasons[stays];
  if (state === "blocked") return o.blocked(message, RETRY_SECONDS);
  if (state !== "waiting") return `${o.drainStates[state]}${message ? `: ${message}` : ""}`;
  return [...needs.map((need) => o.drainReasons[need]), finished ? o.drainReasons.finished : ""].filter(Boolean).join("; ");
}

/** @type {Record<string, string>} */
const TONES = { gone: "good", failed: "bad", blocked: "waiting", leaving: "waiting", cancelled: "bad" };

/** @param {import("./actiondialog.js").Objective} objective */
export function openDrain({ action, resource, objects, succeeded = () => {} }) {
  const closed = new AbortController(), stopped = new AbortController();
  const signal = AbortSignal.any([closed.signal, stopped.signal]);
  const command = h("pre", { class: "value", id: "kubectl", tabindex: "0" }), http = h("pre", { class: "value", id: "http", tabindex: "0" });
  const messages = h("div", { "aria-live": "polite" }), summary = h("p", { "aria-live": "polite" }, o.drainReading), list = h("ul", { class: "results", id: "results" });
  const run = h("button", { type: "submit", class: "button danger", id: "run", disabled: true }, action.label);
  const leave = button(texts.cancel, () => dialog.close(), { id: "leave-action" }), halt = button(o.stop, () => { stopped.abort(); halt.disabled = true; }, { id: "stop", hidden: true });
  /** @type {NodePlan[]} */
  let nodes = [];
  let begun = false;
  const plans = () => nodes.flatMap((one) => one.plans), evicted = () => plans().filter(({ stays }) => !stays);
  const form = new ActionForm(() => draw());
  const cordon = (/** @type {KubeObject} */ node) => action.request(resource, node, {}, new Date());

  const draw = () => {
    const { values } = form, needs = needsOf(plans());
    run.disabled = begun || needs.some((need) => !values[need]);
    command.textContent = commandLine(drainCommand(nodes.map(({ node }) => node.metadata.name), { force: values.force, emptyDir: values.emptyDir, seconds: values.seconds }));
    const requests = nodes.flatMap((one) => [cordon(one.node), ...one.plans.filter(({ stays }) => !stays).map(({ pod }) => evictionOf(pod, values.seconds ?? ""))]);
    http.textContent = [...requests.slice(0, SHOWN).map(httpText), ...(requests.length > SHOWN ? [o.moreRequests(requests.length - SHOWN)] : [])].join("\n\n");
  };
  /** The lines of the pods, by their plans. @type {Map<PodPlan, HTMLElement>} */
  const lines = new Map();
  const show = () => {
    for (const [plan, line] of lines) {
      const text = stateText(plan), { namespace, name } = plan.pod.metadata;
      const whole = `${namespace}/${name}${text ? `: ${text}` : ""}`;
      if (line.textContent !== whole) line.textContent = whole;
      line.className = plan.stays ? "quiet" : TONES[plan.state] ?? "";
    }
    const all = evicted();
    if (begun) summary.textContent = `${o.unschedulable} ${o.drained(all.filter(({ state }) => state === "gone").length, all.length, stopped.signal.aborted)}`;
  };

  const prepare = async () => {
    try {
      const found = await Promise.all(objects.map(async (node) => {
        const { items } = await api.json(podsOn(node.metadata.name), { signal, question: { verb: "list", resource: "pods", apiGroup: "" } });
        return { node, plans: items.map(planOf) };
      }));
      nodes = found;
    } catch (error) {
      if (!signal.aborted) { replace(summary); replace(messages, problem(error)); }
      return;
    }
    summary.textContent = evicted().length ? o.drainPods(evicted().length) : o.noPods;
    for (const plan of plans()) lines.set(plan, h("li"));
    replace(list, [...lines.values()]);
    show();
    form.show([
      { id: "seconds", label: o.gracePeriod, type: "number", initial: "", min: 0 },
      ...needsOf(plans()).map((need) => ({ id: need, label: o.confirmations[need], type: /** @type {const} */ ("checkbox") })),
    ]);
    draw();
  };

  const drain = async (/** @type {NodePlan} */ { node, plans: all }, /** @type {string} */ seconds) => {
    const { name } = node.metadata, { method, path, type, body } = cordon(node);
    await api.ask(path, { method, type, body: JSON.stringify(body), signal, question: questionOf("patch", resource, "", name) });
    await evictAll(all.filter(({ stays }) => !stays), {
      evict: (pod) => { const one = evictionOf(pod, seconds); return api.ask(one.path, { method: one.method, body: JSON.stringify(one.body), signal }); },
      remaining: async () => new Set((await api.json(podsOn(name), { accept: METADATA, signal })).items.map((/** @type {any} */ pod) => pod.metadata.uid)),
      pause: (milliseconds) => api.pause(milliseconds, signal), changed: show,
    }, signal);
    if (all.every(({ stays, state }) => stays || state === "gone")) succeeded(node);
  };

  const send = async (/** @type {SubmitEvent} */ event) => {
    event.preventDefault();
    const { seconds } = form.values;
    begun = run.disabled = true;
    inputs.hidden = run.hidden = leave.hidden = true;
    halt.hidden = false;
    halt.focus();
    try {
      for (const one of nodes) if (!signal.aborted) await drain(one, seconds);
      show();
    } catch (error) { if (!signal.aborted) replace(messages, problem(error)); }
    halt.hidden = true;
    leave.hidden = false;
    leave.textContent = o.close;
    leave.focus();
  };

  const inputs = h("div", null, form.element, h("details", { open: true }, h("summary", null, t.asKubectl), command), h("details", null, h("summary", null, o.asRequests), http));
  const title = objects.length > 1 ? o.titleOfMany(action.label, objects.length, resource.resource) : `${action.label}: ${resource.kind} ${objects[0].metadata.name}`;
  const dialog = openDialog(action.label, () => h("form", { class: "action", onsubmit: send }, h("h1", null, title), summary, list, inputs, messages, h("div", { class: "row" }, leave, halt, run)));
  dialog.addEventListener("close", () => closed.abort());
  prepare();
}
