import { once } from "node:events";
import { mkdirSync, writeFileSync } from "node:fs";
import * as http from "node:http";
import * as https from "node:https";
import { connect } from "node:net";
import { join } from "node:path";
import { Application, FrontEnd, Mode, TlsMaterial } from "../../src/index.js";
import { dhParametersPem } from "../../src/render/index.js";
import { listeningSockets } from "../../src/runtime/sockets/node/listeningSockets.js";
import { issue } from "../../testkit/certificates.js";
import { freePorts } from "../../testkit/ports.js";
import { openFolder, Portico } from "../../testkit/portico.js";
import { descriptorsOf } from "../../testkit/processes.js";
import { newStack } from "../../testkit/stacks.js";

/** What front ends serve in TLS mode, with and without an HTTP port. */

const NAME = "app.example.org";
const HOST = "127.0.0.1";
let folder: string;
let portico: Portico | undefined;
let application: http.Server;

beforeAll(async () => {
  folder = openFolder();
  for (const name of ["page", "media"]) mkdirSync(join(folder, name));
  const { cert, key } = await issue({ names: [NAME] });
  writeFileSync(join(folder, "cert.pem"), cert);
  writeFileSync(join(folder, "key.pem"), key, { mode: 0o600 });
  writeFileSync(join(folder, "dhparam.pem"), dhParametersPem());
  application = http.createServer((_, response) => response.end("the application")).listen(0, HOST);
  await once(application, "listening");
});
afterAll(() => application.close());
afterEach(async () => {
  await portico?.stop();
  portico = undefined;
});

const FRONT_ENDS = {
  "an ordinary application": (mode: Mode, upstream: { url: string }) =>
    new FrontEnd(newStack(), "app", { ...common(), mode, application: Application.server(upstream) }),
  "the file-sync service": (mode: Mode, web: { url: string }) =>
    new FrontEnd(newStack(), "app", {
      ...common(),
      mode,
      upstreams: { web },
      application: Application.fileSync({ installDirectory: folder }),
    }),
  Nextcloud: (mode: Mode, web: { url: string }) =>
    new FrontEnd(newStack(), "app", {
      ...{ ...common(), mode, upstreams: { web } },
      application: Application.nextcloud(),
    }),
};

const common = () => ({
  host: { address: "192.0.2.10", publicName: NAME },
  service: { runtimeBundle: __filename },
  paths: { defaultPageDirectory: join(folder, "page") },
  proxy: { workers: 1, logs: { access: { stream: "stdout" }, error: { stream: "stderr" } } as const },
});

/** The ports on which the processes of a proxy listen. */
function portsOf({ pid, workers }: { readonly pid: number; readonly workers: readonly number[] }): number[] {
  const open = new Set([pid, ...workers].flatMap(descriptorsOf));
  const own = listeningSockets().filter(({ inode }) => open.has(`socket:[${inode}]`));
  return [...new Set(own.map(({ port }) => port))].sort((a, b) => a - b);
}

async function ask(client: typeof http | typeof https, port: number): Promise<[number, string]> {
  const request = client.get({
    ...{ host: HOST, port, path: "/sync/", headers: { host: NAME } },
    ...{ servername: NAME, rejectUnauthorized: false },
  });
  const [response] = (await once(request, "response")) as [http.IncomingMessage];
  const body: Buffer[] = [];
  for await (const chunk of response) body.push(chunk as Buffer);
  return [response.statusCode!, Buffer.concat(body).toString()];
}

test.each(Object.entries(FRONT_ENDS))("%s: without an HTTP port, https alone is served", async (_, make) => {
  const [httpPort, httpsPort] = (await freePorts(2)) as [number, number];
  const { port } = application.address() as { port: number };
  const material = TlsMaterial.fromFiles({
    certificate: join(folder, "cert.pem"),
    key: join(folder, "key.pem"),
    dhparam: join(folder, "dhparam.pem"),
  });
  const start = async (more: { httpPort: number | false }): Promise<number[]> => {
    const mode = Mode.tls({ address: HOST, material, httpsPort, ...more });
    portico = await Portico.start(make(mode, { url: `http://${HOST}:${port}` }).proxy.config);
    expect(portico.errors).toBe("");
    return portsOf({ pid: portico.pid, workers: portico.workers() });
  };
  expect(await start({ httpPort })).toEqual([httpPort, httpsPort].sort((a, b) => a - b));
  expect((await ask(http, httpPort))[0]).toBe(301);
  await portico!.stop();

  expect(await start({ httpPort: false })).toEqual([httpsPort]);
  expect(await ask(https, httpsPort)).toEqual([200, "the application"]);
  const [refused] = (await once(connect(httpPort, HOST), "error")) as [NodeJS.ErrnoException];
  expect(refused.code).toBe("ECONNREFUSED");
});
