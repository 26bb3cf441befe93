import assert from "node:assert/strict";
import test from "node:test";

import { CLOSE, closeMessage, message, parseMessage, resizeMessage, resultOf, STDIN } from "../../../kubetwist/ui/static/lib/channels.js";
import { containersOf, execPath, logPath, mainContainer, mayRestart } from "../../../kubetwist/ui/static/lib/containers.js";
import { commandLine, wordsOf } from "../../../kubetwist/ui/static/lib/shellwords.js";
import { forSeeds } from "./random.js";

const pod = {
  metadata: { name: "a", annotations: { "kubectl.kubernetes.io/default-container": "app" } },
  spec: { containers: [{ name: "proxy" }, { name: "app" }], initContainers: [{ name: "setup" }, { name: "mesh", restartPolicy: "Always" }], ephemeralContainers: [{ name: "debug" }] },
  status: { containerStatuses: [{ name: "app", restartCount: 2, state: { running: {} } }] },
};

test("all containers of a pod are found, with their role", () => {
  assert.deepEqual(containersOf(pod).map(({ name, role, restarts }) => [name, role, restarts]), [
    ["proxy", "container", 0], ["app", "container", 2], ["setup", "init", 0], ["mesh", "sidecar", 0], ["debug", "ephemeral", 0],
  ]);
  assert.equal(mainContainer(pod), "app");
  assert.equal(mainContainer({ ...pod, metadata: {} }), "proxy");
  assert.equal(mainContainer({}), "");
  assert.deepEqual(containersOf({ spec: { containers: "x" }, status: { containerStatuses: 3 } }), []);
});

test("a container is restarted by its role, its exit code, and the policies", () => {
  const ended = (/** @type {number} */ exitCode, own = {}, spec = {}, role = "containers", metadata = {}, phase = "Running") => mayRestart({
    metadata, spec: { [role]: [{ name: "c", ...own }], ...spec }, status: { phase, [role === "initContainers" ? "initContainerStatuses" : "containerStatuses"]: [{ name: "c", state: { terminated: { exitCode } } }] },
  }, "c");
  assert.deepEqual([ended(0), ended(1)], [true, true]);
  assert.deepEqual(["Always", "OnFailure", "Never"].map((restartPolicy) => [ended(0, {}, { restartPolicy }), ended(1, {}, { restartPolicy })]), [[true, true], [false, true], [false, false]]);
  assert.deepEqual([ended(0, {}, {}, "initContainers"), ended(1, {}, {}, "initContainers"), ended(1, {}, { restartPolicy: "Never" }, "initContainers")], [false, true, false]);
  assert.equal(ended(0, { restartPolicy: "Always" }, { restartPolicy: "Never" }, "initContainers"), true);
  const rules = (/** @type {string} */ operator) => ({ restartPolicy: "Never", restartPolicyRules: [{ action: "Restart", exitCodes: { operator, values: [42] } }] });
  assert.deepEqual([ended(42, rules("In")), ended(1, rules("In")), ended(42, rules("NotIn")), ended(1, rules("NotIn"))], [true, false, false, true]);
  assert.equal(ended(1, {}, {}, "containers", { deletionTimestamp: "2026-01-01T00:00:00Z" }), false);
  assert.equal(ended(1, {}, {}, "containers", {}, "Failed"), false);
  assert.equal(mayRestart(pod, "app"), true);
  assert.equal(mayRestart(pod, "debug"), false);
  assert.equal(mayRestart(pod, "other"), false);
});

test("paths have the chosen options only", () => {
  assert.equal(logPath("/p", { container: "a b", follow: true, previous: false, tailLines: "", sinceSeconds: "60" }), "/p/log?container=a+b&follow=true&sinceSeconds=60");
  assert.equal(execPath("/p", "c", ["sh", "-c", "a & b"]), "/p/exec?container=c&stdin=true&stdout=true&tty=true&command=sh&command=-c&command=a+%26+b");
});

test("messages have their channel", () => {
  assert.deepEqual([...message(STDIN, "é")], [0, 0xc3, 0xa9]);
  assert.deepEqual([...closeMessage(STDIN)], [CLOSE, 0]);
  assert.equal(new TextDecoder().decode(resizeMessage(80, 24)), '\x04{"Width":80,"Height":24}');
  const { channel, data } = parseMessage(message(3, "x").buffer);
  assert.deepEqual([channel, ...data], [3, 120]);
  assert.equal(parseMessage(new ArrayBuffer(0)), null);
});

test("the error channel has the exit code", () => {
  assert.deepEqual(resultOf('{"status":"Success"}'), { code: 0, message: "" });
  const failure = { status: "Failure", reason: "NonZeroExitCode", message: "command terminated", details: { causes: [{ reason: "ExitCode", message: "7" }] } };
  assert.deepEqual(resultOf(JSON.stringify(failure)), { code: 7, message: "command terminated" });
  assert.deepEqual(resultOf('{"status":"Failure","message":"no sh"}'), { code: null, message: "no sh" });
  assert.deepEqual(resultOf("text"), { code: null, message: "text" });
  assert.deepEqual(resultOf("null"), { code: null, message: "null" });
});

test("a command is divided into words as by a shell", () => {
  assert.deepEqual(wordsOf(" sh -c 'echo  \"a\"' \"b \\\" \\n\" c\\ d'e'\"f\" '' "), ["sh", "-c", 'echo  "a"', 'b " \\n', "c def", ""]);
  for (const line of ["", "  ", "a 'b", 'a "b', "a\\"]) assert.equal(wordsOf(line), null, line);
});

test("quoted words are read back", () => {
  forSeeds(500, (random) => {
    const words = Array.from({ length: 1 + Math.floor(random() * 4) }, () => Array.from({ length: Math.floor(random() * 6) }, () => "a'\"\\ $`\nb"[Math.floor(random() * 9)]).join(""));
    assert.deepEqual(wordsOf(commandLine(words)), words);
  });
});
