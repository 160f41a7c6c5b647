import { once } from "node:events";
import * as http2 from "node:http2";
import * as tls from "node:tls";
import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { ProxyConfigInput } from "../../src/model/index.js";
import { fixed, loopback, oneServer } from "../../testkit/oneServer.js";
import { issue } from "../../testkit/certificates.js";
import { freePorts } from "../../testkit/ports.js";
import { openFolder, Portico } from "../../testkit/portico.js";
import { nextEvent } from "../../testkit/waiting.js";

/** What is different while a temporary certificate serves in place of one that no authority has issued yet. */

let folder: string;
let portico: Portico | undefined;
beforeEach(() => (folder = openFolder()));
afterEach(async () => {
  await portico?.stop();
  portico = undefined;
});

const LISTENERS = ["temporary", "mixed", "files"] as const;
type Name = (typeof LISTENERS)[number];

/** @param down where nothing responds, least of all an authority */
function config(ports: Readonly<Record<Name, number>>, down: number): ProxyConfigInput {
  const files = { certificate: join(folder, "cert.pem"), key: join(folder, "key.pem") };
  const acme = { acme: { authority: "ca", names: ["a.example.net"] } };
  const material = { temporary: acme, mixed: { ...files, certificates: [acme] }, files };
  return oneServer({
    certificateAuthorities: [
      {
        name: "ca",
        directory: `https://127.0.0.1:${down}/dir`,
        agreeToTerms: true,
        challenge: "tls-alpn-01",
        roots: files.certificate,
      },
    ],
    listeners: LISTENERS.map((name) =>
      loopback(name, ports[name], { ...material[name], policy: "mozilla-intermediate" }),
    ),
    server: {
      hsts: { includeSubDomains: true },
      responseHeaders: { set: { "X-Content-Type-Options": "nosniff" } },
    },
    routes: [fixed("ok")],
  });
}

interface Fields {
  readonly "strict-transport-security"?: string | undefined;
  readonly "x-content-type-options"?: string | undefined;
}

async function overHttp1(port: number, servername: string): Promise<Fields> {
  const socket = tls.connect({ port, host: "127.0.0.1", servername, rejectUnauthorized: false });
  await once(socket, "secureConnect");
  socket.write(`GET / HTTP/1.1\r\nHost: ${servername}\r\nConnection: close\r\n\r\n`);
  const [response] = (await nextEvent(socket, "data")) as [Buffer];
  socket.destroy();
  const lines = response.toString("latin1").split("\r\n");
  const valueOf = (name: string): string | undefined =>
    lines.find((line) => line.toLowerCase().startsWith(`${name}: `))?.slice(name.length + 2);
  return {
    "strict-transport-security": valueOf("strict-transport-security"),
    "x-content-type-options": valueOf("x-content-type-options"),
  };
}

async function overHttp2(port: number, servername: string): Promise<Fields> {
  const session = http2.connect(`https://127.0.0.1:${port}`, { servername, rejectUnauthorized: false });
  const stream = session.request({ ":path": "/", ":authority": servername });
  const [fields] = (await nextEvent(stream, "response")) as [http2.IncomingHttpHeaders];
  session.destroy();
  return fields as Fields;
}

test("HSTS is not sent for a name with a temporary certificate; all other fields are", async () => {
  mkdirSync(join(folder, "state"));
  const { key, cert } = await issue({ type: "ec", names: ["b.example.net"] });
  writeFileSync(join(folder, "key.pem"), key, { mode: 0o600 });
  writeFileSync(join(folder, "cert.pem"), cert);
  const [temporary, mixed, files, down] = (await freePorts(4)) as [number, number, number, number];
  // An empty name is no directory.
  const env = { STATE_DIRECTORY: join(folder, "state"), RUNTIME_DIRECTORY: "" };
  portico = await Portico.start(config({ temporary, mixed, files }, down), { env });
  expect(existsSync("control.sock")).toBe(false);
  for (const ask of [overHttp1, overHttp2]) {
    const nosniff = { "x-content-type-options": "nosniff" };
    for (const port of [temporary, mixed]) {
      const fields = await ask(port, "a.example.net");
      expect(fields).toMatchObject(nosniff);
      expect(fields["strict-transport-security"]).toBeUndefined();
    }
    const hsts = { "strict-transport-security": "max-age=31536000; includeSubDomains" };
    for (const port of [mixed, files])
      expect(await ask(port, "b.example.net")).toMatchObject({ ...nosniff, ...hsts });
  }
});
