// The containers of a pod, and requests for their logs and commands.

/**
 * @typedef {object} Container
 * @property {string} name
 * @property {"container" | "init" | "sidecar" | "ephemeral"} role
 * @property {number} restarts The number of its runs before.
 * @property {any} state Its state in the status of the pod: running, waiting or terminated.
 * @property {any} last The state of its run before.
 */

/**
 * Return the containers of a pod: those that run its main programs first.
 *
 * @param {any} pod
 * @returns {Container[]}
 */
export function containersOf({ spec = {}, status = {} }) {
  const states = new Map([status.containerStatuses, status.initContainerStatuses, status.ephemeralContainerStatuses]
    .flatMap((all) => (Array.isArray(all) ? all : [])).map((one) => [one.name, one]));
  /** @param {any} all @param {(container: any) => Container["role"]} role @returns {Container[]} */
  const some = (all, role) => (Array.isArray(all) ? all : []).map((one) => {
    const known = states.get(one.name);
    return { name: one.name, role: role(one), restarts: known?.restartCount ?? 0, state: known?.state ?? {}, last: known?.lastState ?? {} };
  });
  return [
    ...some(spec.containers, () => "container"),
    ...some(spec.initContainers, (one) => (one.restartPolicy === "Always" ? "sidecar" : "init")),
    ...some(spec.ephemeralContainers, () => "ephemeral"),
  ];
}

/**
 * Return whether a run of a container that has ended can be followed by another one.
 *
 * @param {any} pod
 * @param {string} name The name of the container.
 */
export function mayRestart({ metadata = {}, spec = {}, status = {} }, name) {
  if (metadata.deletionTimestamp || ["Succeeded", "Failed"].includes(status.phase)) return false;
  const found = containersOf({ spec, status }).find((one) => one.name === name);
  if (!found || found.role === "ephemeral") return false;
  const code = found.state.terminated?.exitCode;
  // Its status is not up to date yet, or it waits for its next run.
  if (code === undefined) return true;
  const own = [spec.containers, spec.initContainers].flatMap((all) => all ?? []).find((one) => one.name === name);
  const ruled = (own.restartPolicyRules ?? []).some((/** @type {any} */ { action, exitCodes }) =>
    action.startsWith("Restart") && (exitCodes?.values ?? []).includes(code) === (exitCodes?.operator !== "NotIn"));
  const policy = own.restartPolicy ?? spec.restartPolicy ?? "Always";
  if (ruled || found.role === "sidecar") return true;
  return code === 0 ? policy === "Always" && found.role !== "init" : policy !== "Never";
}

/** Return the name of the container that is shown first. @param {any} pod */
export function mainContainer(pod) {
  const names = containersOf(pod).map(({ name }) => name);
  const wanted = pod.metadata?.annotations?.["kubectl.kubernetes.io/default-container"];
  return names.includes(wanted) ? wanted : names[0] ?? "";
}

/**
 * Return the path of a container's log.
 *
 * @param {string} pod The path of the pod.
 * @param {{ container: string, follow?: boolean, previous?: boolean, timestamps?: boolean, tailLines?: string, sinceSeconds?: string }} options
 */
export function logPath(pod, options) {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(options)) if (value) query.set(name, String(value));
  return `${pod}/log?${query}`;
}

/**
 * Return the path for a command with a terminal.
 *
 * @param {string} pod The path of the pod.
 * @param {string} container
 * @param {string[]} command The program and its arguments.
 */
export function execPath(pod, container, command) {
  const query = new URLSearchParams({ container, stdin: "true", stdout: "true", tty: "true" });
  for (const word of command) query.append("command", word);
  return `${pod}/exec?${query}`;
}
