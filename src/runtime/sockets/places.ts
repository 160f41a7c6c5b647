import type { Socket } from "node:net";

/** Open connections, of which there may be so many: the oldest gives way to a new one, so nobody keeps others out. */
export class SocketPlaces {
  private readonly open = new Set<Socket>();

  constructor(private readonly most: number) {}

  take(socket: Socket): void {
    const { open } = this;
    open.add(socket);
    socket.once("close", () => open.delete(socket));
    const [oldest] = open;
    if (open.size <= this.most) return;
    open.delete(oldest!);
    oldest!.destroy();
  }

  /** Gives back the place of the connection from a port of the peer. */
  release(remotePort: number | undefined): void {
    for (const socket of this.open) if (socket.remotePort === remotePort) this.open.delete(socket);
  }

  /** Ends every connection. */
  clear(): void {
    for (const socket of this.open) socket.destroy();
  }
}
