import type { EveryProtocol } from "./everyProtocol.js";
import { ask, connectHttp2 } from "./http2Session.js";
import { exchange } from "./peers.js";

/** Sends one request over HTTP/1.1 without TLS and over HTTP/2. @returns the statuses of the responses */
export async function statusesOver(
  front: Pick<EveryProtocol, "plainPort" | "securePort">,
  target: string,
  fields: Readonly<Record<string, string>> = {},
): Promise<readonly [plain: number, framed: number]> {
  const lines = Object.entries({ Host: "app.example", Connection: "close", ...fields });
  const head = lines.map(([name, value]) => `${name}: ${value}\r\n`).join("");
  const plain = await exchange(front.plainPort, `GET ${target} HTTP/1.1\r\n${head}\r\n`);
  const session = connectHttp2(front.securePort);
  // HTTP/2 has no absolute-form.
  const path = target.replace(/^http:\/\/[^/]*/, "");
  const framed = await ask(session, { ":path": path, ...fields });
  session.destroy();
  return [plain.status, framed.status];
}
