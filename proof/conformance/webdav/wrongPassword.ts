import { Agent, request } from "node:http";
import { CREDENTIALS } from "./litmus.js";
import { DAV_PATH } from "./servers.js";

/** A client with an old password, which it sends again and again: as a phone does, five times a second for an hour. */
export class WrongPassword {
  /** Responses by status. */
  readonly statuses: Record<string, number> = {};
  private readonly agent = new Agent({ keepAlive: true, maxSockets: 1 });
  private ended = false;
  private readonly over: Promise<void>;

  /** @param port of plain HTTP */
  constructor(private readonly port: number) {
    this.over = this.go();
  }

  /** Goes on until it has sent so many in all. */
  async end(requests: number): Promise<void> {
    while (this.sent < requests) await this.ask();
    this.ended = true;
    await this.over;
    this.agent.destroy();
  }

  stop(): void {
    this.ended = true;
    this.agent.destroy();
  }

  get sent(): number {
    return Object.values(this.statuses).reduce((sum, count) => sum + count, 0);
  }

  private async go(): Promise<void> {
    while (!this.ended) await this.ask();
  }

  private ask(): Promise<void> {
    const { port, agent } = this;
    const authorization = `Basic ${Buffer.from(`${CREDENTIALS.user}:old password`).toString("base64")}`;
    const options = { host: "127.0.0.1", port, agent, path: `${DAV_PATH}/`, headers: { authorization } };
    return new Promise((resolve) => {
      const seen = (status: string): void => {
        this.statuses[status] = (this.statuses[status] ?? 0) + 1;
        resolve();
      };
      const asked = request({ ...options, method: "PROPFIND" }, (response) => {
        response.resume().on("end", () => seen(String(response.statusCode)));
      });
      asked.on("error", ({ message }) => seen(message)).end();
    });
  }
}
