// WebSockets to the server. Scripts cannot set their headers, so the session's key is in a subprotocol.

import { hasSession, identity } from "./api.js";

const KEY_PROTOCOL = "csrf.kubetwist.dev.";

/**
 * Open a WebSocket of binary messages.
 *
 * @param {string} path
 * @param {string} protocol The subprotocol of the messages.
 */
export function openSocket(path, protocol) {
  const protocols = hasSession() ? [`${KEY_PROTOCOL}${identity()["X-Kubetwist-UI"]}`, protocol] : [protocol];
  const socket = new WebSocket(new URL(path, location.href.replace(/^http/, "ws")), protocols);
  socket.binaryType = "arraybuffer";
  return socket;
}
