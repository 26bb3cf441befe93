// The containers of a pod, and requests for their logs and commands.

/**
 * @typedef {object} Container
 * @property {string} name
 * @property {"container" | "init" | "sidecar" | "ephemeral"} role
 * @property {boolean} restarted Whether it has run before.
 * @property {any} state Its state in the status of the pod: running, waiting or terminated.
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
    return { name: one.name, role: role(one), restarted: (known?.restartCount ?? 0) > 0, state: known?.state ?? {} };
  });
  return [
    ...some(spec.containers, () => "container"),
    ...some(spec.initContainers, (one) => (one.restartPolicy === "Always" ? "sidecar" : "init")),
    ...some(spec.ephemeralContainers, () => "ephemeral"),
  ];
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
