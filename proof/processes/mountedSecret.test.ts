import { once } from "node:events";
import * as http2 from "node:http2";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import * as tls from "node:tls";
import { fixed, loopback, oneServer } from "../../testkit/oneServer.js";
import { type Issued, issue } from "../../testkit/certificates.js";
import { mountSecret } from "../../testkit/mountedSecret.js";
import { openFolder, Portico } from "../../testkit/portico.js";
import { freePorts } from "../../testkit/ports.js";
import { eventually, nextEvent } from "../../testkit/waiting.js";
import type { ProxyConfigInput } from "../../src/model/index.js";
import { secureContext } from "../../testkit/tlsClient.js";

/** A certificate in a Secret that is mounted into a pod: kubelet replaces both files by switching one link. */

let secret: string;
let port: number;
let portico: Portico;

beforeEach(async () => {
  secret = join(openFolder(), "tls");
  [port] = (await freePorts(1)) as [number];
  await renew("one");
  portico = await Portico.start(config());
});

afterEach(() => portico.stop());

async function renew(name: string): Promise<void> {
  mount(await issue({ type: "ec", names: ["files.example.org"], name }));
}

const mount = ({ key, cert }: Pick<Issued, "key" | "cert">): void =>
  mountSecret(secret, { "tls.key": key, "tls.crt": cert }, 0o400);

function config(): ProxyConfigInput {
  const files = { certificate: join(secret, "tls.crt"), key: join(secret, "tls.key") };
  return oneServer({
    workers: 2,
    listeners: [loopback("https", port, { ...files, policy: "mozilla-intermediate" })],
    server: { serverNames: ["files.example.org"] },
    routes: [fixed("here")],
  });
}

/** The name in the certificate of one request, which its handshake proved to belong to the server's key. */
async function served(): Promise<string> {
  const socket = tls.connect({ port, host: "127.0.0.1", secureContext, rejectUnauthorized: false });
  await once(socket, "secureConnect");
  const { subject } = socket.getPeerX509Certificate()!;
  socket.write("GET / HTTP/1.1\r\nHost: files.example.org\r\nConnection: close\r\n\r\n");
  const [response] = (await nextEvent(socket, "data")) as [Buffer];
  socket.destroy();
  if (!response.toString("latin1").startsWith("HTTP/1.1 200 ")) throw new Error(response.toString("latin1"));
  return subject.replace("CN=", "");
}

test("a switched link is taken under load: no request fails, and the log has nothing but the renewals", async () => {
  const session = http2.connect(`https://127.0.0.1:${port}`, { rejectUnauthorized: false });
  const failures: unknown[] = [];
  session.on("error", (error) => failures.push(error));
  session.on("goaway", (code) => failures.push(`GOAWAY ${code}`));
  const seen: string[] = [];
  let going = true;
  const load = async (request: () => Promise<void>): Promise<number> => {
    let done = 0;
    for (; going; done++) await request().catch((error: unknown) => failures.push(error));
    return done;
  };
  const anew = async (): Promise<void> => {
    const name = await served();
    if (seen.at(-1) !== name) seen.push(name);
    // So many a second find a gap as well as all that the machine can do.
    await sleep(40);
  };
  const overOld = async (): Promise<void> => {
    const stream = session.request({ ":path": "/" });
    const [headers] = (await nextEvent(stream, "response")) as [http2.IncomingHttpHeaders];
    if (Number(headers[":status"]) !== 200) failures.push(headers);
    await once(stream.resume(), "close");
    await sleep(40);
  };
  const loads = [load(anew), load(overOld)];
  const names = ["two", "three", "four"];
  for (const [i, name] of names.entries()) {
    // Not always at the same moment between two looks of the proxy.
    await sleep(700 * i);
    await renew(name);
    await eventually(() => seen.at(-1) === name, `for ${name}`);
  }
  going = false;
  const counts = await Promise.all(loads);
  session.close();
  expect(failures).toEqual([]);
  expect(Math.min(...counts)).toBeGreaterThan(10);
  // While it is being taken, one worker may have it and the other not yet.
  expect([...new Set(seen)]).toEqual(["one", ...names]);
  const lines = portico.errors.split("\n").slice(0, -1);
  expect(lines).toHaveLength(names.length);
  for (const line of lines)
    expect(line).toMatch(/^portico: listeners\[0\].* was renewed, and is valid until /);
});

test("half of a renewal is refused once, and the whole is taken once", async () => {
  const one = await issue({ type: "ec", names: ["files.example.org"], name: "one" });
  const two = await issue({ type: "ec", names: ["files.example.org"], name: "two" });
  mount(one);
  await portico.says(/was renewed/);
  portico.errors = "";
  mount({ key: two.key, cert: one.cert });
  await portico.says(
    /is refused, and the previous one stays in use: .*tls\.key\): does not belong to the certificate/,
  );
  for (let i = 0; i < 6; i++) expect(await served()).toBe("one");
  mount(two);
  await eventually(async () => (await served()) === "two", "for the whole", { everyMs: 100 });
  // A look later.
  await sleep(4_000);
  for (let i = 0; i < 6; i++) expect(await served()).toBe("two");
  expect(portico.errors.match(/is refused/g)).toHaveLength(1);
  expect(portico.errors.match(/was renewed/g)).toHaveLength(1);
});
