import { connect, createServer, type Socket } from "node:net";
import { announce } from "./announce.js";

/**
 * A long line: passes bytes on after a delay in each direction, and as many as come. Arguments: port to connect to,
 * milliseconds of delay. Prints its own port.
 */
const [target, delayMs] = process.argv.slice(2).map(Number) as [number, number];

const server = createServer({ noDelay: true }, (client) => {
  const upstream = connect({ host: "127.0.0.1", port: target, noDelay: true });
  pass(client, upstream);
  pass(upstream, client);
});
announce(server);

/** What arrives is written when its time has come, without regard to backpressure: the line itself has no limit. */
function pass(from: Socket, to: Socket): void {
  const queue: { due: number; bytes: Buffer | undefined }[] = [];
  const deliver = (): void => {
    while (queue.length > 0 && queue[0]!.due <= performance.now()) {
      const { bytes } = queue.shift()!;
      if (bytes === undefined) to.end();
      else to.write(bytes);
    }
    if (queue.length > 0) setTimeout(deliver, queue[0]!.due - performance.now());
  };
  const take = (bytes: Buffer | undefined): void => {
    queue.push({ due: performance.now() + delayMs, bytes });
    if (queue.length === 1) setTimeout(deliver, delayMs);
  };
  from.on("data", take);
  from.on("end", () => take(undefined));
  from.on("error", () => to.destroy());
  from.on("close", (failed) => failed && to.destroy());
}
