// The drain of a node, as `kubectl drain` does it (k8s.io/kubectl, pkg/drain).

/** @typedef {"" | "daemonSet" | "mirror"} Stay Why a pod stays on the node. */
/** @typedef {"force" | "emptyDir"} Need What has to be confirmed before a pod is evicted. */

/**
 * @typedef {object} PodPlan
 * @property {any} pod
 * @property {Stay} stays
 * @property {Need[]} needs
 * @property {boolean} finished
 * @property {"waiting" | "evicting" | "blocked" | "leaving" | "gone" | "failed" | "cancelled"} state
 * @property {string} message
 */

/** Seconds after which an eviction that a disruption budget prevented is tried again. */
export const RETRY_SECONDS = 5;
const POLL_MILLISECONDS = 1000, CONCURRENCY = 6;

/**
 * Return what a drain does with a pod.
 *
 * @param {any} pod
 * @returns {PodPlan}
 */
export function planOf(pod) {
  const { metadata, spec = {}, status = {} } = pod;
  const controller = (metadata.ownerReferences ?? []).find((/** @type {any} */ owner) => owner.controller);
  const finished = status.phase === "Succeeded" || status.phase === "Failed";
  const mirror = metadata.annotations?.["kubernetes.io/config.mirror"] !== undefined;
  /** @type {Need[]} */
  const needs = [];
  if (!finished && !controller) needs.push("force");
  if (!finished && (spec.volumes ?? []).some((/** @type {any} */ volume) => volume.emptyDir)) needs.push("emptyDir");
  /** @type {Stay} */
  const stays = mirror ? "mirror" : controller?.kind === "DaemonSet" && !finished ? "daemonSet" : "";
  return { pod, stays, needs: stays ? [] : needs, finished, state: metadata.deletionTimestamp ? "leaving" : "waiting", message: "" };
}

/**
 * Return the confirmations that pods need.
 *
 * @param {PodPlan[]} plans
 * @returns {Need[]}
 */
export const needsOf = (plans) => (/** @type {Need[]} */ (["force", "emptyDir"])).filter((need) => plans.some(({ needs }) => needs.includes(need)));

/**
 * Return the words of the command.
 *
 * @param {string[]} nodes
 * @param {{ force?: boolean, emptyDir?: boolean, seconds?: string }} options
 */
export const drainCommand = (nodes, { force, emptyDir, seconds }) => [
  "kubectl", "drain", ...nodes, "--ignore-daemonsets", ...(force ? ["--force"] : []), ...(emptyDir ? ["--delete-emptydir-data"] : []), ...(seconds ? [`--grace-period=${seconds}`] : []),
];

/**
 * Return the request that evicts a pod.
 *
 * @param {any} pod
 * @param {string} seconds The grace period; "" for that of the pod.
 */
export function evictionOf({ metadata: { name, namespace, uid } }, seconds) {
  const part = encodeURIComponent;
  const deleteOptions = { preconditions: { uid }, ...(seconds === "" ? {} : { gracePeriodSeconds: Number(seconds) }) };
  return { method: "POST", path: `/api/v1/namespaces/${part(namespace)}/pods/${part(name)}/eviction`, body: { apiVersion: "policy/v1", kind: "Eviction", metadata: { name, namespace }, deleteOptions } };
}

/**
 * Evict pods, and wait until they are gone. An eviction that a disruption budget prevents is tried again; the pods that wait for that do
 * not hinder others.
 *
 * @param {PodPlan[]} plans Of pods that do not stay; their states are changed.
 * @param {object} calls
 * @param {(pod: any) => Promise<unknown>} calls.evict Throws an APIError.
 * @param {() => Promise<Set<string>>} calls.remaining Returns the uids of the pods on the node.
 * @param {(milliseconds: number) => Promise<void>} calls.pause Ends earlier when the signal is aborted.
 * @param {() => void} calls.changed Called after each change of a state.
 * @param {AbortSignal} signal
 */
export async function evictAll(plans, { evict, remaining, pause, changed }, signal) {
  /** @type {(() => void)[]} */
  const queue = [];
  let free = CONCURRENCY;
  /** @type {() => Promise<void>} */
  const acquire = () => (free > 0 ? (free--, Promise.resolve()) : new Promise((resolve) => { queue.push(resolve); }));
  const release = () => { const next = queue.shift(); if (next) next(); else free++; };
  /** @param {PodPlan} plan @param {PodPlan["state"]} state */
  const set = (plan, state, message = "") => { Object.assign(plan, { state, message }); changed(); };
  /** @param {PodPlan} plan Returns whether to try again. */
  const attempt = async (plan) => {
    await acquire();
    try {
      if (signal.aborted) return false;
      if (plan.state !== "blocked") set(plan, "evicting");
      await evict(plan.pod);
      set(plan, "leaving");
    } catch (/** @type {any} */ error) {
      if (signal.aborted) return false;
      if (error.code === 429) { set(plan, "blocked", error.message); return true; }
      // A conflict is one of the uid: the pod has been replaced.
      if (error.code === 404 || error.code === 409) set(plan, "gone");
      else if (error.status?.details?.causes?.some((/** @type {any} */ cause) => cause.reason === "NamespaceTerminating")) set(plan, "leaving");
      else set(plan, "failed", error.message);
    } finally { release(); }
    return false;
  };
  const settled = () => plans.every(({ state }) => state === "gone" || state === "failed");
  const evictions = plans.filter(({ state }) => state === "waiting").map(async (plan) => {
    while (!signal.aborted && await attempt(plan)) await pause(RETRY_SECONDS * 1000);
  });
  while (!signal.aborted && !settled()) {
    if (plans.some(({ state }) => state === "leaving")) {
      try {
        const left = await remaining();
        for (const plan of plans) if (plan.state === "leaving" && !left.has(plan.pod.metadata.uid)) set(plan, "gone");
      } catch (/** @type {any} */ error) {
        // The pods may be gone, or not: it is asked again.
        if ([401, 403].includes(error.code)) { for (const plan of plans) if (plan.state === "leaving") set(plan, "failed", error.message); }
      }
    }
    if (!settled()) await pause(POLL_MILLISECONDS);
  }
  await Promise.all(evictions);
  for (const plan of plans) if (plan.state !== "gone" && plan.state !== "failed" && plan.state !== "leaving") set(plan, "cancelled");
}
