import { createHash } from "node:crypto";
import { once } from "node:events";
import * as http from "node:http";
import type { AddressInfo } from "node:net";

/** One upload as the application saw it. Times are milliseconds since 1970, as the shell of a command has them. */
export interface Write {
  readonly target: string;
  readonly begin: number;
  /** When its last byte was stored, before it got a response; or when it was cut off. Undefined while it runs. */
  end?: number;
  /** SHA-256 of what is stored; undefined for one that was cut off. */
  digest?: string;
}

/** An application that stores uploads, and remembers when it did. */
export class Store {
  readonly writes: Write[] = [];
  private readonly server = http.createServer((request, response) => this.take(request, response));

  async listen(): Promise<this> {
    this.server.listen(0, "127.0.0.1");
    await once(this.server, "listening");
    return this;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.server.address() as AddressInfo).port}`;
  }

  async close(): Promise<void> {
    this.server.close();
    this.server.closeAllConnections();
    await once(this.server, "close");
  }

  private take(request: http.IncomingMessage, response: http.ServerResponse): void {
    if (request.method !== "PUT") return void response.end("read");
    const write: Write = { target: request.url!, begin: Date.now() };
    this.writes.push(write);
    const hash = createHash("sha256");
    request.on("data", (chunk: Buffer) => hash.update(chunk));
    request.on("end", () => {
      write.digest = hash.digest("hex");
      write.end = Date.now();
      response.writeHead(201).end();
    });
    request.on("close", () => (write.end ??= Date.now()));
  }
}
