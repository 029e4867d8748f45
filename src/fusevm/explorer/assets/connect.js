// The socket to the server: questions by number, progress and answers to them, cancel, and connecting again.

import { set } from "./store.js";

const waiting = new Map();
let socket = null;
let next = 1;
let beginning = () => {};

export function ask(question, progress = () => {}) {
  return new Promise((resolve, reject) => {
    if (!socket || socket.readyState !== WebSocket.OPEN) {
      reject(new Error("not connected: is fusevm explore still running?"));
      return;
    }
    waiting.set(next, { resolve, reject, progress });
    socket.send(JSON.stringify({ ...question, id: next++ }));
  });
}

export function cancelAll() {
  if (socket && socket.readyState === WebSocket.OPEN) socket.send('{"do":"cancel"}');
}

function received(message) {
  if (message.hello) {
    beginning(message.hello);
    return;
  }
  const asked = waiting.get(message.id);
  if (!asked) return;
  if ("progress" in message) {
    asked.progress(message.progress);
    return;
  }
  waiting.delete(message.id);
  if ("result" in message) asked.resolve(message.result);
  else asked.reject(Object.assign(new Error(message.error.message), message.error));
}

export function connect(begin) {
  beginning = begin;
  const address = new URL("ws", location.href);
  address.protocol = location.protocol === "https:" ? "wss:" : "ws:";
  address.hash = "";
  socket = new WebSocket(address);
  socket.onopen = () => set("live", { live: true });
  socket.onmessage = (event) => received(JSON.parse(event.data));
  socket.onclose = () => {
    for (const { reject } of waiting.values()) reject(new Error("the connection was closed"));
    waiting.clear();
    set("live", { live: false });
    setTimeout(() => connect(begin), 1500);
  };
}
