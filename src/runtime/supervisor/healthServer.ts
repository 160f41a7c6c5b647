import { type AddressInfo, createServer, type ListenOptions, type Server, type Socket } from "node:net";
import { httpDate } from "../exchange/httpDate.js";
import { reasonPhrase } from "../exchange/reasonPhrases.js";
import { readFirst } from "../sockets/firstBytes.js";

/** A status and one line of text. */
export type HealthAnswer = readonly [status: number, text: string];

/** The answer for a path; undefined if there is nothing. */
type Answers = (path: string) => HealthAnswer | undefined;

/**
 * The HTTP server of the health listener. Who asks are probes: a short head, no body, one request for each connection.
 * Anything else is closed soon. If there are more connections than a few, the oldest is closed: a client that holds many
 * of them must not keep probes out.
 *
 * Not Node's own: that reads all requests that come together, thousands of them, before anything else can happen.
 */
export class HealthServer {
  private readonly open = new Set<Socket>();
  private readonly server: Server;

  private constructor(private readonly answers: Answers) {
    // A probe may close its side and still read.
    this.server = createServer({ allowHalfOpen: true }, (socket) => this.accept(socket));
  }

  /**
   * Opens a socket, or goes on with one that is open.
   *
   * @returns the server, or why it cannot listen
   */
  static listen(
    where: ListenOptions & { readonly fd?: number },
    answers: Answers,
  ): Promise<HealthServer | NodeJS.ErrnoException> {
    const health = new HealthServer(answers);
    return new Promise((resolve) => {
      // Also what accept() reports later, for instance without descriptors: the next probe may succeed.
      health.server.on("error", resolve).listen(where, () => resolve(health));
    });
  }

  get at(): AddressInfo {
    return this.server.address() as AddressInfo;
  }

  /** Accepts no more; what it has is answered, or cut after a moment. */
  close(): void {
    this.server.close();
    const cut = (): void => this.open.forEach((socket) => socket.destroy());
    setTimeout(cut, HEAD_MS).unref();
  }

  private accept(socket: Socket): void {
    const { open } = this;
    open.add(socket);
    socket.once("close", () => open.delete(socket));
    readFirst(socket, {
      parse: headIn,
      timeoutMs: HEAD_MS,
      // Nothing after the head is read.
      found: (head) => socket.end(this.answer(head), "latin1", () => socket.destroy()),
      failed: () => undefined,
    });
    const [oldest] = open;
    if (open.size <= CONNECTIONS_MAX) return;
    open.delete(oldest!);
    oldest!.destroy();
  }

  private answer(head: string): string {
    const [, method = "", target = ""] = REQUEST_LINE.exec(head) ?? [];
    if (head.length > HEAD_BYTES_MAX) return answerText([431, "head too long"], method);
    if (method === "") return answerText([400, "not a request"], method);
    if (method !== "GET" && method !== "HEAD")
      return answerText([405, "GET or HEAD"], method, "Allow: GET, HEAD\r\n");
    return answerText(this.answers(target.split("?")[0]!) ?? [404, "not found"], method);
  }
}

/** A whole head, or more bytes than one may have; undefined while some of it is missing. */
function headIn(bytes: Buffer): string | undefined {
  const most = bytes.toString("latin1", 0, HEAD_BYTES_MAX + 1);
  const end = most.indexOf("\r\n\r\n");
  if (end !== -1) return most.slice(0, end + 2);
  return most.length > HEAD_BYTES_MAX ? most : undefined;
}

function answerText([status, text]: HealthAnswer, method: string, more = ""): string {
  return (
    `HTTP/1.1 ${status} ${reasonPhrase(status)}\r\nDate: ${httpDate()}\r\n` +
    `Content-Type: text/plain; charset=utf-8\r\nContent-Length: ${text.length + 1}\r\n` +
    `Cache-Control: no-store\r\nConnection: close\r\n${more}\r\n` +
    (method === "HEAD" ? "" : `${text}\n`)
  );
}

const HEAD_MS = 2_000;
const HEAD_BYTES_MAX = 4_096;
const CONNECTIONS_MAX = 64;
const REQUEST_LINE = /^([A-Z]+) (\S+) HTTP\/1\.[01]\r\n/;
