// The states of one pod.

import * as api from "./api.js";
import { pathOf, questionOf } from "../lib/resources.js";

/** Milliseconds before the pod is read again, if it may not be watched or its watch has ended. */
const INTERVAL = 5000;

/**
 * Yield a pod, and again after each change, until it is deleted.
 *
 * @param {string} namespace
 * @param {string} name
 * @param {AbortSignal} signal
 * @returns {AsyncGenerator<any>} It fails with 404 if there is no such pod.
 */
export async function* podChanges(namespace, name, signal) {
  const pods = api.resourceOf("", "pods");
  if (!pods) return;
  const watched = await api.mayI({ group: "", resource: "pods", verb: "watch", namespace, name });
  while (!signal.aborted) {
    const pod = await api.json(pathOf(pods, namespace, name), { signal, question: questionOf("get", pods, namespace, name) });
    yield pod;
    if (watched) {
      const query = new URLSearchParams({ watch: "true", fieldSelector: `metadata.name=${name}`, resourceVersion: pod.metadata.resourceVersion });
      for await (const event of api.watch(`${pathOf(pods, namespace)}?${query}`, { signal })) {
        if (event.type === "DELETED") return;
        if (event.type === "ERROR") break;
        yield event.object;
      }
    }
    await api.pause(INTERVAL, signal);
  }
}
