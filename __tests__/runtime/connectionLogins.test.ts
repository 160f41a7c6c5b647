import { Agent, createServer, request as requestPlain, type Server } from "node:http";
import { Agent as TlsAgent, request as requestTls } from "node:https";
import {
  createServer as createRawServer,
  type AddressInfo,
  type Server as RawServer,
  type Socket,
} from "node:net";
import type { UpstreamInput } from "../../src/model/index.js";
import { type EveryProtocol, startEveryProtocol } from "../../testkit/everyProtocol.js";
import { ask, connectHttp2 } from "../../testkit/http2Session.js";
import { eventually } from "../../testkit/waiting.js";

/**
 * Upstreams that authenticate connections (NTLM, Negotiate): nobody gets a page by another's log-in, and who logs in stays
 * logged in.
 */

interface LogIn {
  /** The field and its value in the responses that ask for a log-in. */
  readonly offer: readonly [string, string];
  readonly scheme: string;
}

/** An upstream of which each connection has its user, as IIS and Apache with `GssapiConnectionBound` have them. */
class Application {
  readonly sockets = new Set<Socket>();
  private readonly users = new Map<Socket, { name: string; loggedIn: boolean }>();
  private readonly server: Server;

  constructor(private readonly logIn: LogIn) {
    this.server = createServer({ keepAliveTimeout: 60_000 }, (request, response) => {
      const { socket } = request;
      const [scheme = "", step, name] = (request.headers.authorization ?? "").split(/[ :]/);
      if (scheme.toLowerCase() === "bearer") return void response.end("by its own field");
      if (step === "first") this.users.set(socket, { name: name!, loggedIn: false });
      const user = this.users.get(socket);
      if (step === "last" && user?.name === name) user!.loggedIn = true;
      if (user?.loggedIn === true) return void response.end(`page of ${user.name}`);
      const [field, value] = this.logIn.offer;
      response.writeHead(401, { [field]: step === "first" ? `${this.logIn.scheme} challenge` : value });
      response.end("who are you?");
    });
    this.server.on("connection", (socket) => {
      this.sockets.add(socket);
      socket.on("close", () => this.sockets.delete(socket));
    });
  }

  async listen(): Promise<string> {
    await new Promise<void>((done) => this.server.listen(0, "127.0.0.1", done));
    return `http://127.0.0.1:${(this.server.address() as AddressInfo).port}`;
  }

  close(): void {
    this.server.close();
    this.server.closeAllConnections();
  }
}

let applications: Application[];
let front: EveryProtocol;

async function start(
  logIn: LogIn,
  { count = 1, ...upstream }: Partial<UpstreamInput> & { count?: number } = {},
  trustedProxies: readonly string[] = [],
): Promise<void> {
  applications = Array.from({ length: count }, () => new Application(logIn));
  const servers = (await Promise.all(applications.map((one) => one.listen()))).map((url) => ({ url }));
  // A machine that is busy for longer than the default would end log-ins.
  const web = {
    name: "web",
    idleTimeoutMs: 60_000,
    ...(count === 1 ? servers[0] : { servers }),
    ...upstream,
  };
  front = await startEveryProtocol({
    routes: [{ name: "web", path: "/", action: { type: "proxy", upstream: "web" } }],
    upstreams: [web as UpstreamInput],
    config: { trustedProxies: [...trustedProxies] },
  });
}
let plainServer: RawServer | undefined;

/** An upstream that begins each response like this, and names its connection. @returns its URL */
async function raw(head: string): Promise<string> {
  let count = 0;
  plainServer = createRawServer((socket) => {
    const body = `connection ${++count}`;
    // The proxy ends connections by resets.
    socket.on("error", () => undefined);
    socket.on("data", () => socket.write(`${head}Content-Length: ${body.length}\r\n\r\n${body}`));
  });
  await new Promise<void>((done) => plainServer!.listen(0, "127.0.0.1", done));
  return `http://127.0.0.1:${(plainServer.address() as AddressInfo).port}`;
}

afterEach(async () => {
  const faults = front.serving.faults.count;
  await front.close();
  for (const one of applications) one.close();
  plainServer?.close();
  expect(faults).toBe(0);
});

type Fields = Readonly<Record<string, string>>;

/** A client with one connection. */
class Client {
  private readonly agent: Agent;

  constructor(private readonly secure: boolean) {
    this.agent = secure
      ? new TlsAgent({
          keepAlive: true,
          maxSockets: 1,
          rejectUnauthorized: false,
          ALPNProtocols: ["http/1.1"],
        })
      : new Agent({ keepAlive: true, maxSockets: 1 });
  }

  get(fields: Fields = {}): Promise<string> {
    const port = this.secure ? front.securePort : front.plainPort;
    const options = { host: "127.0.0.1", port, agent: this.agent, headers: { host: "a", ...fields } };
    return new Promise((resolve, reject) => {
      const asked = (this.secure ? requestTls : requestPlain)(options, (response) => {
        let body = "";
        response.on("data", (bytes: Buffer) => (body += bytes.toString()));
        response.on("end", () => resolve(`${response.statusCode} ${body}`));
      });
      asked.on("error", reject);
      asked.end();
    });
  }

  async logIn(scheme: string, name: string, fields: Fields = {}): Promise<string> {
    await this.get({ ...fields, authorization: `${scheme} first:${name}` });
    return this.get({ ...fields, authorization: `${scheme} last:${name}` });
  }

  close(): void {
    this.agent.destroy();
  }
}

async function overHttp2(fields: Fields = {}): Promise<string> {
  const session = connectHttp2(front.securePort);
  const { status, body, code } = await ask(session, { ":path": "/", ...fields });
  session.destroy();
  return code === 0 ? `${status} ${body}` : `reset ${code}`;
}

const UNKNOWN = "401 who are you?";
const NTLM: LogIn = { offer: ["WWW-Authenticate", "NTLM"], scheme: "NTLM" };

const LOG_INS: readonly LogIn[] = [
  NTLM,
  { offer: ["WWW-Authenticate", "Negotiate"], scheme: "Negotiate" },
  { offer: ["WWW-Authenticate", 'Basic realm="a, b", Negotiate'], scheme: "negotiate" },
  { offer: ["WWW-Authenticate", "Bearer"], scheme: "nTLM" },
  { offer: ["Proxy-Authenticate", "NTLM"], scheme: "NTLM" },
  { offer: ["WWW-Authenticate", "CredSSP"], scheme: "CredSSP" },
  { offer: ["WWW-Authenticate", "Bearer"], scheme: "credSSP" },
];

describe.each(LOG_INS)("offered by $offer.0: $offer.1, done by $scheme", (logIn) => {
  test.each([false, true])("serves the client that logged in, and nobody else (TLS: %s)", async (secure) => {
    await start(logIn);
    const [alice, bob, stranger] = [new Client(secure), new Client(secure), new Client(!secure)];
    expect(await alice.get()).toBe(UNKNOWN);
    expect(await alice.logIn(logIn.scheme, "alice")).toBe("200 page of alice");
    for (let i = 0; i < 3; i++) {
      expect(await stranger.get()).toBe(UNKNOWN);
      expect(await overHttp2()).toBe(UNKNOWN);
      expect(await alice.get()).toBe("200 page of alice");
    }
    expect(await bob.logIn(logIn.scheme, "bob")).toBe("200 page of bob");
    expect(await alice.get()).toBe("200 page of alice");
    expect(await bob.get()).toBe("200 page of bob");
    for (const one of [alice, bob, stranger]) one.close();
    expect(await new Client(secure).get()).toBe(UNKNOWN);
  });
});

/** The heads of a response by which an upstream may say so, whatever the request had. */
test.each([
  "HTTP/1.1 200 OK\r\nPersistent-Auth: true\r\n",
  "HTTP/1.1 200 OK\r\nProxy-Support: Session-Based-Authentication\r\n",
  "HTTP/1.1 103 Early Hints\r\nWWW-Authenticate: NTLM\r\n\r\nHTTP/1.1 200 OK\r\n",
  "HTTP/1.1 100 Continue\r\nWWW-Authenticate: Negotiate\r\n\r\nHTTP/1.1 200 OK\r\n",
  'HTTP/1.1 200 OK\r\nWWW-Authenticate: Basic realm="a",\r\n\tNTLM\r\n',
])("a connection is the client's after %j", async (head) => {
  await start(NTLM, { url: await raw(head) });
  const alice = new Client(false);
  const stranger = new Client(false);
  expect(await alice.get()).toBe("200 connection 1");
  expect(await stranger.get()).toBe("200 connection 2");
  expect(await overHttp2()).toBe("200 connection 3");
  expect(await alice.get()).toBe("200 connection 1");
  for (const one of [alice, stranger]) one.close();
});

test("a log-in over HTTP/2 is refused, so that the client uses HTTP/1.1, and the error log says why", async () => {
  await start(NTLM);
  expect(await overHttp2()).toBe(UNKNOWN);
  expect(await overHttp2({ authorization: "NTLM first:alice" })).toBe("reset 13");
  expect(await overHttp2({ authorization: "Negotiate first:alice" })).toBe("reset 13");
  expect(await overHttp2({ authorization: "Bearer negotiate" })).toBe("200 by its own field");
  expect(await front.errorLog()).toMatch(/log-in that belongs to a connection .*HTTP_1_1_REQUIRED/);
});

test("requests of other schemes share connections", async () => {
  await start({ offer: ["WWW-Authenticate", "Bearer"], scheme: "Bearer" });
  for (let i = 0; i < 5; i++) {
    const client = new Client(false);
    expect(await client.get({ authorization: "Bearer ntlm" })).toBe("200 by its own field");
    expect(await client.get()).toBe(UNKNOWN);
    client.close();
  }
  expect(applications[0]!.sockets.size).toBe(1);
});

test("a client that a trusted proxy names is not logged in by another one on the same connection", async () => {
  await start(NTLM, {}, ["127.0.0.1"]);
  const gateway = new Client(false);
  const alice = { "x-forwarded-for": "192.0.2.1" };
  const stranger = { "x-forwarded-for": "192.0.2.2" };
  expect(await gateway.logIn("NTLM", "alice", alice)).toBe("200 page of alice");
  expect(await gateway.get(stranger)).toBe(UNKNOWN);
  expect(await gateway.get(alice)).toBe("200 page of alice");
  gateway.close();
});

test.each([{}, { sticky: { cookie: "web" } }])(
  "with several servers a log-in stays at its server: %j",
  async (more) => {
    await start(NTLM, { count: 3, ...more });
    const clients = Array.from({ length: 6 }, () => new Client(false));
    for (const [i, client] of clients.entries())
      expect(await client.logIn("NTLM", `user-${i}`)).toBe(`200 page of user-${i}`);
    for (const [i, client] of clients.entries()) {
      expect(await client.get()).toBe(`200 page of user-${i}`);
      expect(await overHttp2()).toBe(UNKNOWN);
      client.close();
    }
  },
);

test("connections that wait for one client give way to requests of others, and are given back", async () => {
  await start(NTLM, { connectionsMax: 2, clientSharePercent: 100 });
  const clients = ["a", "b", "c"].map((name) => ({ name, client: new Client(false) }));
  for (const { name, client } of clients)
    expect(await client.logIn("NTLM", name)).toBe(`200 page of ${name}`);
  const stranger = new Client(false);
  expect(await stranger.get()).toBe(UNKNOWN);
  expect(await clients[2]!.client.get()).toBe("200 page of c");
  // The oldest log-in was given up.
  expect(await clients[0]!.client.get()).toBe(UNKNOWN);
  expect(applications[0]!.sockets.size).toBeLessThanOrEqual(2);
  for (const { client } of clients) client.close();
  stranger.close();
});

test("with an idle time, a connection ends that waits for a client", async () => {
  await start(NTLM, { idleTimeoutMs: 300 });
  const alice = new Client(false);
  expect(await alice.logIn("NTLM", "alice")).toBe("200 page of alice");
  await eventually(() => applications[0]!.sockets.size === 0, "for the end of the connection");
  expect(await alice.get()).toBe(UNKNOWN);
  alice.close();
});
