import { execFile } from "node:child_process";
import { once } from "node:events";
import { createSecureServer, type IncomingHttpHeaders } from "node:http2";
import { createServer as createHttpsServer } from "node:https";
import type { AddressInfo } from "node:net";
import { promisify } from "node:util";
import { probe } from "../../src/host/diagnosis/expected/probe.js";
import { issue } from "../../testkit/certificates.js";

/** A probe asks as a client does: an application may compare the host that a request names with its own. */

const HOST = "files.example.org";
const run = promisify(execFile);

interface Asked {
  readonly url?: string | undefined;
  readonly headers: IncomingHttpHeaders;
}

/** What a request says of its target, over either protocol. */
const targetOf = ({ url, headers }: Asked): object => ({
  url,
  authority: headers[":authority"],
  host: headers["host"],
  scheme: headers[":scheme"],
});

test.each(["http2", "http1.1"] as const)("names its host as curl does, over %s", async (protocol) => {
  const { key, cert } = await issue({ names: [HOST] });
  const seen: object[] = [];
  const handle = (request: Asked, response: { end(): void }): void => {
    seen.push(targetOf(request));
    response.end();
  };
  const options = { key, cert };
  const server =
    protocol === "http2" ? createSecureServer(options, handle) : createHttpsServer(options, handle);
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  const request = { scheme: "https", host: HOST, path: "/sync/?a=b", address: "127.0.0.1", port } as const;
  try {
    const outcome = await probe(request, { timeoutMs: 10_000, insecure: true });
    expect(outcome).toMatchObject({ response: { status: 200 } });
    const to = `${HOST}:443:127.0.0.1:${port}`;
    await run("curl", ["-skI", `--${protocol}`, "--connect-to", to, `https://${HOST}${request.path}`]);
    expect(seen).toHaveLength(2);
    expect(seen[0]).toEqual(seen[1]);
  } finally {
    server.close();
  }
});
