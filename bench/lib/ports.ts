import { connect } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";

/** Waits until a port accepts connections. */
export async function accepting(port: number, alive: () => boolean, limitMs = 15_000): Promise<boolean> {
  const deadline = performance.now() + limitMs;
  while (!(await accepts(port))) {
    if (!alive() || performance.now() > deadline) return false;
    await sleep(10);
  }
  return true;
}

function accepts(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect({ host: "127.0.0.1", port });
    socket.once("connect", () => {
      socket.destroy();
      resolve(true);
    });
    socket.once("error", () => resolve(false));
  });
}
