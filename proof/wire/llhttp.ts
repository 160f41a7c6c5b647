export interface ReadMessage {
  readonly method: string;
  readonly target: string;
  /** Names and values in turn. */
  readonly fields: readonly string[];
  /** One char a byte, without framing. */
  readonly body: string;
}

export interface Reading {
  readonly messages: readonly ReadMessage[];
  /** What came last: the end of a message, a part of one, or what the parser refuses. */
  readonly rest: "none" | "part" | "refused";
}

/** Node's own parser of HTTP/1.1, which many upstreams are: the C code of llhttp inside `node:http`. */
interface LlhttpParser {
  [callback: number]: unknown;
  initialize(type: number, resource: object, headBytesMax: number, leniency: number): void;
  execute(bytes: Buffer): number | Error;
  finish(): undefined | Error;
  close(): void;
}

interface Llhttp {
  readonly HTTPParser: {
    new (): LlhttpParser;
    readonly REQUEST: number;
    readonly RESPONSE: number;
    readonly kOnHeaders: number;
    readonly kOnHeadersComplete: number;
    readonly kOnBody: number;
    readonly kOnMessageComplete: number;
    readonly kLenientAll: number;
  };
  readonly methods: readonly string[];
}

// No public module gives the parser alone, and a server around it would add rules of its own.
// oxlint-disable-next-line typescript/no-require-imports
const { HTTPParser, methods } = require("_http_common") as Llhttp;

const HEAD_BYTES_MAX = 1 << 20;

/** @param lenient as with `insecureHTTPParser: true` */
export function readWithLlhttp(bytes: Buffer, lenient: boolean): Reading {
  const messages: ReadMessage[] = [];
  let open: { method: string; target: string; fields: string[]; body: string } | undefined;
  let upgrade = false;
  let early: string[] = [];
  let earlyTarget = "";
  const parser = new HTTPParser();
  parser.initialize(HTTPParser.REQUEST, {}, HEAD_BYTES_MAX, lenient ? HTTPParser.kLenientAll : 0);
  // Long heads come in parts: some fields before the rest of the head.
  parser[HTTPParser.kOnHeaders] = (fields: string[], url: string) => {
    if (open !== undefined) return;
    early.push(...fields);
    earlyTarget += url;
  };
  parser[HTTPParser.kOnHeadersComplete] = (
    _major: number,
    _minor: number,
    fields: string[] | undefined,
    method: number,
    url: string | undefined,
    _status: number,
    _reason: string,
    upgrades: boolean,
  ) => {
    upgrade = upgrades;
    open = {
      method: methods[method] ?? "",
      target: earlyTarget + (url ?? ""),
      fields: [...early, ...(fields ?? [])],
      body: "",
    };
    early = [];
    earlyTarget = "";
    return 0;
  };
  parser[HTTPParser.kOnBody] = (bytesOrAll: Buffer, from?: number, length?: number) => {
    const piece = from === undefined ? bytesOrAll : bytesOrAll.subarray(from, from + length!);
    open!.body += piece.toString("latin1");
  };
  parser[HTTPParser.kOnMessageComplete] = () => {
    messages.push(open!);
    open = undefined;
  };
  let refused = false;
  for (let at = 0; at < bytes.length && !refused;) {
    upgrade = false;
    const outcome = parser.execute(bytes.subarray(at));
    // It stops after a request to upgrade. A server that does not fulfil it reads on.
    if (typeof outcome !== "number" || (at + outcome < bytes.length && !upgrade)) refused = true;
    else at += outcome;
  }
  const started = !refused && (open !== undefined || parser.finish() !== undefined);
  parser.close();
  return { messages, rest: refused ? "refused" : started ? "part" : "none" };
}
