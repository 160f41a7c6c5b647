import type { AddressInfo, Server } from "node:net";

/** Listens on a free loopback port and prints which. */
export function announce(server: Server): void {
  server.listen(0, "127.0.0.1", () => {
    console.log(JSON.stringify({ port: (server.address() as AddressInfo).port }));
  });
}
