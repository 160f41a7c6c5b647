import {
  createHash,
  createHmac,
  createPublicKey,
  generateKeyPairSync,
  verify,
  X509Certificate,
} from "node:crypto";
import { once } from "node:events";
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import type { ServerResponse } from "node:http";
import { createServer, type Server } from "node:https";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { AcmeError } from "../../src/runtime/acme/acmeError.js";
import { accountFile, AcmeAuthority } from "../../src/runtime/acme/authority.js";
import { AcmeEngine } from "../../src/runtime/acme/engine.js";
import { pageOf } from "../../src/runtime/acme/acmeClient.js";
import { OpenChallenges } from "../../src/runtime/acme/challenges.js";
import type { Clock } from "../../src/runtime/acme/clock.js";
import { type AcmeHost, LEFT, type OrderedCertificate } from "../../src/runtime/acme/acmeHost.js";
import type { Challenge } from "../../src/runtime/dispatch/challenge.js";
import * as der from "../../src/runtime/tls/der.js";
import { Order } from "../../src/runtime/acme/order.js";
import {
  alternativeNames,
  authorityKeyIdentifier,
  CLIENTS_ONLY,
  type Issued,
  issue,
  POISON,
  signed,
} from "../../testkit/certificates.js";
import { eventually } from "../../testkit/waiting.js";

/**
 * Each request of an order and what follows from each response. `proof/acme/` has the same with a real authority, which
 * has few of these responses; this one is a script: its default responses make an order succeed.
 */

interface Said {
  readonly status?: number;
  readonly headers?: Readonly<Record<string, string>>;
  /** JSON, or a text as it is. */
  readonly body?: unknown;
}
type Script = (payload: Record<string, unknown>, times: number) => Said | Promise<Said>;

const ERROR = "urn:ietf:params:acme:error:";
const TOKEN = "token-of-16-chars";
const DAY = 24 * 3_600_000;

let ca: Issued;
let server: Server;
let base: string;
let folder: string;
let script: Record<string, Script>;
/** `POST /order {"identifiers":…}`, and what stands in the header besides nonce, URL and algorithm. */
let requests: string[];
let signers: string[];
let waits: number[];
let now: number;
let responded: (readonly Challenge[])[];
let unfit: string | undefined;
/** What was logged and installed. */
let lines: string[];
/** What was installed last, and what its issuer is called by, if by anything. */
let installed: { key: string; cert: string } | undefined;
let keyIdentifier: string | undefined;
let issuerName: string;
/** What a request was not expected to be. */
let unexpected: Error[];

beforeAll(async () => {
  ca = await issue({ type: "ec", name: "127.0.0.1", names: ["127.0.0.1"] });
  server = createServer(ca, (request, response) => {
    const chunks: Buffer[] = [];
    request.on("data", (chunk: Buffer) => chunks.push(chunk));
    request.on(
      "end",
      () =>
        void respond(request.method!, request.url!, Buffer.concat(chunks), request.headers, response).catch(
          (error: Error) => (unexpected.push(error), response.destroy()),
        ),
    );
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  base = `https://127.0.0.1:${(server.address() as AddressInfo).port}`;
});
afterAll(() => server.close());

async function respond(
  method: string,
  url: string,
  body: Buffer,
  headers: NodeJS.Dict<string | string[]>,
  response: ServerResponse,
): Promise<void> {
  const shown = `${method} ${url}`;
  const signed = method === "POST" ? (JSON.parse(body.toString()) as Record<string, string>) : undefined;
  const payload = signed === undefined || signed["payload"] === "" ? undefined : decoded(signed["payload"]!);
  requests.push(payload === undefined ? shown : `${shown} ${JSON.stringify(payload, short)}`);
  if (signed !== undefined) {
    expect(headers["content-type"]).toBe("application/jose+json");
    const { kid, jwk, nonce, url: at, alg } = decoded(signed["protected"]!) as Record<string, string>;
    expect([typeof nonce, at, alg]).toEqual(["string", base + url, "ES256"]);
    signers.push(kid?.replace(base, "") ?? "jwk");
    if (jwk !== undefined) {
      const key = {
        key: createPublicKey({ key: jwk as never, format: "jwk" }),
        dsaEncoding: "ieee-p1363",
      } as const;
      const input = Buffer.from(`${signed["protected"]}.${signed["payload"]}`);
      expect(verify("sha256", input, key, Buffer.from(signed["signature"]!, "base64url"))).toBe(true);
    }
  } else expect([headers["content-type"], headers["accept-language"]]).toEqual([undefined, "en"]);
  const path = url.split("?")[0]!;
  const times = requests.filter((one) => one.split(" ")[1] === url).length;
  const said: Said = (await script[path]?.(payload ?? {}, times)) ?? { status: 404 };
  const text = typeof said.body === "string" ? said.body : JSON.stringify(said.body ?? {});
  const nonce = method === "GET" ? {} : { "replay-nonce": `nonce-${requests.length}` };
  // Without its length Node closes the connection after a response to HEAD.
  const length = method === "HEAD" ? { "content-length": "0" } : {};
  response.writeHead(said.status ?? 200, { ...nonce, ...length, ...said.headers });
  response.end(method === "HEAD" ? undefined : text);
}

const decoded = (text: string): Record<string, unknown> =>
  JSON.parse(Buffer.from(text, "base64url").toString()) as Record<string, unknown>;
const short = (key: string, value: unknown): unknown =>
  key === "csr" || key === "signature" ? "..." : value;

/** An order of two names, of which the first was proved before. */
function usual(): Record<string, Script> {
  let proved = false;
  let certificate: string | undefined;
  const at = (path: string): string => base + path;
  return {
    "/dir": () => ({ body: { newNonce: at("/nonce"), newAccount: at("/account"), newOrder: at("/order") } }),
    "/nonce": () => ({}),
    "/account": () => ({ status: 201, headers: { location: "/account/1" }, body: { orders: at("/orders") } }),
    "/orders": () => ({ body: { orders: [] } }),
    "/order": () => ({ status: 201, headers: { location: "/order/1" } }),
    "/order/1": () => ({
      body: {
        status: certificate !== undefined ? "valid" : proved ? "ready" : "pending",
        authorizations: [at("/proved"), at("/open")],
        finalize: at("/finalize"),
        certificate: at("/certificate"),
      },
    }),
    "/proved": () => ({ body: { status: "valid" } }),
    "/open": () => ({
      body: {
        status: proved ? "valid" : "pending",
        identifier: { type: "dns", value: "b.example" },
        challenges: [
          { type: "dns-01", url: at("/dns"), token: TOKEN, status: "pending" },
          { type: "http-01", url: at("/challenge"), token: TOKEN, status: "pending" },
        ],
      },
    }),
    "/challenge": () => ((proved = true), {}),
    "/finalize": ({ csr }) => ((certificate = certificateFor(csr as string)), {}),
    "/certificate": () => ({ body: certificate! }),
  };
}

function certificateFor(csr: string, names = NAMES, to = 90, from = -100, more: Buffer[] = []): string {
  const [request] = der.values(Buffer.from(csr, "base64url"));
  const [info] = der.values(request!.content);
  const [, , publicKey] = der.values(info!.content);
  const made = signed({
    serial: Buffer.from([1]),
    subject: [],
    issuer: [
      ["CN", issuerName],
      ["O", "Let's"],
    ],
    from: new Date(Date.now() + from * DAY),
    to: new Date(Date.now() + to * DAY),
    publicKey: der.sequence(publicKey!.content),
    signer: generateKeyPairSync("ec", { namedCurve: "P-256" }).privateKey,
    extensions: [
      alternativeNames(names),
      ...(keyIdentifier === undefined ? [] : [authorityKeyIdentifier(keyIdentifier)]),
      ...more,
    ],
  });
  return `${made}\n`;
}

const NAMES = ["a.example", "b.example"];

/** Time passes by waiting, and no other way. */
const clock: Clock = {
  now: () => now,
  elapsed: () => now,
  wait: (ms, signal) => {
    // Workers get half a minute to respond to challenges, which here they do at once.
    if (ms === 30_000) return new Promise((resolve) => signal.addEventListener("abort", () => resolve()));
    waits.push(ms);
    now += ms;
    return Promise.resolve();
  },
};

const host: AcmeHost = {
  respondToChallenges: (challenges) => (responded.push(challenges), Promise.resolve()),
  unfit: () => Promise.resolve(unfit),
  install: (issued) => {
    installed = issued;
    lines.push(`installed ${issued.id}`);
  },
  log: (level, message) => void lines.push(`${level} ${message}`),
};

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "portico-order-"));
  writeFileSync(join(folder, "roots.pem"), ca.cert);
  [requests, signers, waits, responded, unexpected, lines] = [[], [], [], [], [], []];
  script = usual();
  now = Date.now();
  unfit = installed = keyIdentifier = undefined;
  issuerName = "Scripted";
});
afterEach(() => {
  rmSync(folder, { recursive: true });
  expect(unexpected).toEqual([]);
});

type More = Partial<Omit<OrderedCertificate, "authority">> & {
  authority?: Partial<OrderedCertificate["authority"]>;
};

function begin({ authority: config, ...more }: More = {}) {
  const wanted = {
    ...{ id: "ca-1", names: NAMES, keyType: "ecdsa-p256", challenge: "http-01" },
    ...more,
    authority: {
      ...{ name: "ca", directory: `${base}/dir`, agreeToTerms: true, roots: join(folder, "roots.pem") },
      ...config,
    },
  } as unknown as OrderedCertificate;
  const { signal } = new AbortController();
  const authority = new AcmeAuthority(wanted.authority, folder, clock, signal);
  const challenges = new OpenChallenges(host, clock);
  const options = { wanted, authority, challenges, clock, signal, folder: join(folder, "c") };
  return { wanted, authority, order: new Order({ ...options, unfit: (...all) => host.unfit(...all) }) };
}

const complete = (more?: More, replaced: { id?: string; asked: boolean } = { asked: false }) =>
  begin(more).order.complete({ id: undefined, ...replaced });

/** What an order failed with; the script's own address is left out. */
async function failure(more?: More): Promise<object> {
  try {
    await complete(more);
  } catch (error) {
    if (!(error instanceof AcmeError)) throw error;
    const { code, detail, more } = error;
    return JSON.parse(JSON.stringify({ code, detail, ...more }).replaceAll(base, "")) as object;
  }
  throw new Error("it succeeded");
}

const START = ["GET /dir", "HEAD /nonce", 'POST /account {"termsOfServiceAgreed":true,"contact":[]}'];
const NEW_ORDER =
  'POST /order {"identifiers":[{"type":"dns","value":"a.example"},{"type":"dns","value":"b.example"}]}';

describe("an order", () => {
  test("is these requests, and leaves key and certificate and nothing else", async () => {
    const accounts = dirname(accountFile(folder, begin().wanted.authority));
    mkdirSync(accounts);
    writeFileSync(join(accounts, ".0123456789ab.tmp"), "left by a crash");
    const kept = await complete();
    expect(readdirSync(accounts).sort()).toEqual(["account.json", "limits.json"]);
    expect(requests).toEqual([
      ...START,
      NEW_ORDER,
      "POST /order/1",
      "POST /proved",
      "POST /open",
      "POST /challenge {}",
      "POST /open",
      "POST /order/1",
      'POST /finalize {"csr":"..."}',
      "POST /order/1",
      "POST /certificate",
    ]);
    expect(signers).toEqual(["jwk", ...Array<string>(10).fill("/account/1")]);
    expect(waits).toEqual([]);
    const account = JSON.parse(readFileSync(accountFile(folder, begin().wanted.authority), "utf8")) as {
      key: string;
    };
    const { crv, kty, x, y } = createPublicKey(account.key).export({ format: "jwk" });
    const thumbprint = createHash("sha256").update(JSON.stringify({ crv, kty, x, y })).digest("base64url");
    expect(account).toEqual({ key: expect.any(String), url: `${base}/account/1`, orders: `${base}/orders` });
    expect(responded).toEqual([
      [{ type: "http-01", token: TOKEN, keyAuthorization: `${TOKEN}.${thumbprint}` }],
      [],
    ]);
    expect(readdirSync(join(folder, "c"))).toEqual(["certificate.pem"]);
    expect(readFileSync(join(folder, "c/certificate.pem"), "utf8")).toBe(kept.key + kept.cert);
    expect(new X509Certificate(kept.cert).issuer).toBe("CN=Scripted\nO=Let's");
    const limits = readdirSync(folder).find((name) => name.startsWith("ca-"))!;
    expect(JSON.parse(readFileSync(join(folder, limits, "limits.json"), "utf8"))).toEqual({
      orders: [now],
      failures: {},
      issued: { "a.example b.example": [now] },
    });
  });

  test("has the mail address, the profile and the certificate that it replaces, where the authority knows of them", async () => {
    const directory = script["/dir"]!({}, 0) as { body: object };
    const meta = { profiles: { classic: "", shortlived: "" } };
    script["/dir"] = () => ({ body: { ...directory.body, renewalInfo: `${base}/renewal`, meta } });
    await complete({ authority: { email: "a@example.org", profile: "classic" } }, { id: "x.y", asked: true });
    expect(requests.slice(2, 4)).toEqual([
      'POST /account {"termsOfServiceAgreed":true,"contact":["mailto:a@example.org"]}',
      NEW_ORDER.replace(/}$/, ',"profile":"classic","replaces":"x.y"}'),
    ]);
  });

  test("of addresses is by the profile for them, and without it by none", async () => {
    const names = ["192.0.2.7", "2001:DB8:0::1"];
    const identifiers = [
      { type: "ip", value: "192.0.2.7" },
      { type: "ip", value: "2001:db8::1" },
    ];
    script["/order"] = () => ({ status: 403, body: { type: `${ERROR}rejectedIdentifier`, detail: "no" } });
    await failure({ names });
    const directory = script["/dir"]!({}, 0) as { body: object };
    script["/dir"] = () => ({ body: { ...directory.body, meta: { profiles: { shortlived: "" } } } });
    await failure({ names });
    expect(requests.filter((one) => one.startsWith("POST /order "))).toEqual([
      `POST /order ${JSON.stringify({ identifiers })}`,
      `POST /order ${JSON.stringify({ identifiers, profile: "shortlived" })}`,
    ]);
  });

  test("is looked at more and more seldom, or as often as the authority says, for ten minutes", async () => {
    const pending = { body: { status: "pending" } };
    const { "/order/1": order } = script;
    script["/order/1"] = (payload, times) =>
      times === 1 || times > 10
        ? order!(payload, times)
        : { ...pending, ...(times > 8 ? { headers: { "retry-after": times === 9 ? "7" : "0" } } : {}) };
    await complete();
    expect(waits).toEqual([250, 500, 1_000, 2_000, 4_000, 5_000, 5_000, 7_000, 250]);
  });

  test("that comes to no end stays open", async () => {
    const { "/order/1": order } = script;
    script["/order/1"] = (payload, times) =>
      times === 1
        ? order!(payload, times)
        : { body: { status: "pending" }, headers: { "retry-after": "300" } };
    expect(await failure()).toEqual({
      code: "timeout",
      detail: "the authority has not finished after 10 minutes",
    });
    expect(waits).toEqual(Array<number>(10).fill(60_000));
    expect(JSON.parse(readFileSync(join(folder, "c/order.json"), "utf8"))).toEqual({
      key: expect.stringContaining("PRIVATE KEY"),
      order: `${base}/order/1`,
      since: expect.any(Number),
      challenges: [
        {
          type: "http-01",
          name: "b.example",
          token: TOKEN,
          keyAuthorization: expect.stringContaining(TOKEN),
        },
      ],
    });
    // It goes on where it was, and responds to its challenges before.
    script["/order/1"] = order!;
    [requests, responded] = [[], []];
    const { order: next } = begin();
    expect(await next.resume()).toBe(true);
    expect([responded.length, requests.length]).toEqual([1, 0]);
    await next.complete({ id: undefined, asked: false });
    expect(requests).not.toContain(NEW_ORDER);
    expect(readdirSync(join(folder, "c"))).toEqual(["certificate.pem"]);
    expect(await begin().order.resume()).toBe(false);
  });
});

describe("an order under way", () => {
  const keep = async (more: object): Promise<void> => {
    const { key } = await issue({ type: "ec" });
    mkdirSync(join(folder, "c"));
    writeFileSync(join(folder, "c/order.json"), JSON.stringify({ key, since: clock.now(), ...more }));
  };

  test.each([
    ["is forgotten", () => ({ status: 404, body: { type: `${ERROR}malformed`, detail: "" } }), true],
    ["is somebody else's", () => ({ status: 403, body: { type: `${ERROR}unauthorized`, detail: "" } }), true],
    ["has failed", () => ({ body: { status: "invalid" } }), true],
    ["cannot be looked at", () => ({ status: 503 }), false],
  ])("that %s makes way for another: %#", async (_, old, isNew) => {
    script["/old"] = old;
    await keep({ order: `${base}/old`, challenges: [] });
    if (isNew) await complete();
    else
      expect(await failure()).toMatchObject({
        code: "serverInternal",
        detail: "the server responded with 503",
      });
    expect(requests.slice(3, 5)).toEqual(isNew ? ["POST /old", NEW_ORDER] : ["POST /old"]);
  });

  test.each<[string, { status: string; names: string[] }, boolean]>([
    ["the same names in another order", { status: "pending", names: ["b.example", "a.example"] }, true],
    ["names that are proved", { status: "ready", names: NAMES }, true],
    ["fewer names", { status: "pending", names: ["a.example"] }, false],
    ["an end", { status: "valid", names: NAMES }, false],
    ["nothing that it says", { status: "pending", names: [] }, false],
  ])("whose response was lost is found again by %s: %#", async (_, { status, names }, isFound) => {
    await keep({});
    script["/orders"] = () => ({
      headers: { link: `<${base}/more>;rel="next"` },
      body: { orders: [`${base}/older`, 7] },
    });
    script["/more"] = () => ({ body: { orders: [`${base}/old`] } });
    script["/older"] = () => ({ body: { status: "invalid" } });
    script["/old"] = () => ({
      body: {
        status,
        ...(names.length === 0 ? {} : { identifiers: names.map((value) => ({ type: "dns", value })) }),
      },
    });
    const { "/old": old, "/order/1": order } = script;
    script["/old"] = (payload, times) => (times === 1 ? old!(payload, times) : order!(payload, times));
    await complete();
    expect(requests.slice(3, 8)).toEqual([
      ...["POST /orders", "POST /more", "POST /old"],
      ...(isFound ? ["POST /old", "POST /proved"] : ["POST /older", NEW_ORDER]),
    ]);
  });

  test("that is neither over nor forgotten after a day makes way for another, with its key", async () => {
    script["/old"] = () => ({ body: { status: "processing" } });
    const age = async (ms: number): Promise<void> => {
      [requests, now] = [[], Date.now()];
      rmSync(join(folder, "c"), { recursive: true, force: true });
      await keep({ order: `${base}/old`, since: now - ms });
    };
    await age(DAY);
    expect(await failure()).toMatchObject({ code: "timeout" });
    // By a clock that was wrong then, or is now.
    for (const ms of [DAY + 1, -DAY - 1]) {
      script = { ...usual(), "/old": script["/old"]!, "/account/1": () => ({}) };
      await age(ms);
      await complete();
      expect(requests).not.toContain("POST /old");
      expect(requests).toContain(NEW_ORDER);
    }
  });

  test("whose certificate was written is over", async () => {
    const kept = await complete();
    requests = [];
    writeFileSync(join(folder, "c/order.json"), JSON.stringify({ key: kept.key, since: clock.now() }));
    expect((await complete()).cert).toBe(kept.cert);
    expect([requests, readdirSync(join(folder, "c"))]).toEqual([[], ["certificate.pem"]]);
  });
});

const problem = (type: string, more: object = {}) => ({
  body: { type: ERROR + type, detail: `about ${type}`, ...more },
});
const at =
  (path: string, said: Said): (() => void) =>
  () =>
    void (script[path] = () => said);
/** Changes a default response. */
const changed =
  (path: string, change: object): (() => void) =>
  () => {
    const before = script[path]!;
    script[path] = async (payload, times) => {
      const said = await before(payload, times);
      return { ...said, body: { ...(said.body as object), ...change } };
    };
  };
const offering = (...challenges: unknown[]): object => ({ challenges });
const offered = (more: object): object => ({
  type: "http-01",
  url: "u",
  token: TOKEN,
  status: "pending",
  ...more,
});

describe("a response of an authority:", () => {
  const NO_JSON = "badResponse: the response of /dir is not JSON, or has more than 20000 values";
  test.each<[string, () => void, string | object]>([
    [
      "a directory without URLs",
      at("/dir", { body: { newNonce: 7, newAccount: "x" } }),
      "badResponse: /dir is not an ACME directory: it has no newNonce, newOrder",
    ],
    [
      "nothing",
      at("/dir", {}),
      "badResponse: /dir is not an ACME directory: it has no newNonce, newAccount, newOrder",
    ],
    ["a number", at("/dir", { body: "7" }), NO_JSON],
    ["null", at("/dir", { body: "null" }), NO_JSON],
    ["lists in lists", at("/dir", { body: `${"[".repeat(500_000)}${"]".repeat(500_000)}` }), NO_JSON],
    [
      "a certificate for tens of thousands of names",
      () => {
        const { "/finalize": finalize } = script;
        let made = "";
        script["/finalize"] = (asked, times) => {
          const more = Array.from({ length: 20_000 }, (_, i) => `n${i}.example`);
          made = certificateFor(asked["csr"] as string, [...NAMES, ...more]);
          return finalize!(asked, times);
        };
        script["/certificate"] = () => ({ body: made });
      },
      {
        code: "unusableCertificate",
        detail: expect.stringMatching(/^it has \d{6} characters with its chain, and 65536 are allowed$/),
      },
    ],
    [
      "no nonce",
      at("/nonce", { headers: { "replay-nonce": "with space" } }),
      "badResponse: /nonce gave no nonce",
    ],
    ["an account without a URL", at("/account", { status: 201 }), "badResponse: /account named no account"],
    [
      "an account that has to be bound",
      changed("/dir", { meta: { externalAccountRequired: true } }),
      "externalAccountRequired: ",
    ],
    ["an order without a URL", at("/order", { status: 201 }), "badResponse: /order named no order"],
    ["a page", at("/order", { status: 404, body: "<html>" }), "malformed: the server responded with 404"],
    ["a redirect", at("/order", { status: 302 }), "malformed: the server responded with 302"],
    ["a failure", at("/order", { status: 500 }), "serverInternal: the server responded with 500"],
    [
      "a problem of no known kind",
      at("/order", { status: 499, body: { type: "about:blank", detail: "a gateway" } }),
      "malformed: a gateway",
    ],
    [
      "a limit without a problem",
      at("/order", { status: 429, headers: { "retry-after": "60" } }),
      { code: "rateLimited", detail: "the server responded with 429", retryAt: expect.any(Number) },
    ],
    [
      "a page with something to agree to",
      at("/order", {
        status: 403,
        headers: {
          link: '<https://ca.example/a>;rel="index", <https://ca.example/t>; rel="terms-of-service"',
        },
        ...problem("userActionRequired"),
      }),
      {
        code: "userActionRequired",
        detail: "about userActionRequired",
        instance: "https://ca.example/t",
        subproblems: [],
      },
    ],
    [
      "subproblems, of which one is none",
      at("/order", {
        status: 403,
        ...problem("malformed", {
          instance: "https://ca.example/i",
          subproblems: [
            { type: `${ERROR}dns`, detail: "d", identifier: { type: "dns", value: "a.example" } },
            { type: `urn:acme:error:caa`, detail: 7 },
            { type: `x${ERROR}dns` },
            { type: `${ERROR}a-b` },
            null,
          ],
        }),
      }),
      {
        code: "malformed",
        detail: "about malformed",
        instance: "https://ca.example/i",
        subproblems: [
          { code: "dns", detail: "d", name: "a.example" },
          { code: "caa", detail: "" },
        ],
      },
    ],
    [
      "an order that is invalid, and why",
      at("/order/1", {
        body: {
          status: "invalid",
          error: { type: `${ERROR}dns`, detail: "d", identifier: { type: "dns", value: "a.example" } },
        },
      }),
      { code: "dns", detail: "d", subproblems: [{ code: "dns", detail: "d", name: "a.example" }] },
    ],
    [
      "an order that is invalid",
      at("/order/1", { body: { status: "invalid", error: { type: "?" } } }),
      "serverInternal: the order is invalid, and the authority does not say why",
    ],
    [
      "an order that is invalid because of all names",
      at("/order/1", { body: { status: "invalid", error: { type: `${ERROR}dns`, detail: "d" } } }),
      { code: "dns", detail: "d", subproblems: [] },
    ],
    [
      "an order that is invalid in the end",
      () => {
        const { "/order/1": order } = script;
        script["/order/1"] = (payload, times) =>
          times < 3
            ? order!(payload, times)
            : { body: { status: "invalid", error: { type: `${ERROR}unauthorized`, detail: "d" } } };
      },
      { code: "notAllowed", detail: "d", subproblems: [] },
    ],
    [
      "names that cannot be proved",
      () => {
        const { "/open": open } = script;
        script["/open"] = async (payload, times) => {
          const { body } = await open!(payload, times);
          const error = { type: `${ERROR}connection`, detail: "refused" };
          const more = times === 1 ? {} : { status: "invalid", challenges: [offered({ error })] };
          return { body: { ...(body as object), ...more } };
        };
      },
      {
        code: "connection",
        detail: "refused",
        subproblems: [{ code: "connection", detail: "refused", name: "b.example" }],
      },
    ],
    [
      "a name that was refused before",
      changed("/open", {
        status: "invalid",
        challenges: [
          ...[offered({}), offered({ error: { type: "?" } })],
          offered({ error: { type: `${ERROR}caa`, detail: "c" } }),
        ],
      }),
      { code: "caa", detail: "c", subproblems: [{ code: "caa", detail: "c", name: "b.example" }] },
    ],
    [
      "an authorization that is over",
      changed("/open", { status: "expired" }),
      {
        code: "unauthorized",
        detail: "the authorization is expired",
        subproblems: [{ code: "unauthorized", detail: "the authorization is expired", name: "b.example" }],
      },
    ],
    [
      "challenges without usable tokens",
      changed("/open", {
        ...offering(
          ...["x".repeat(15), "x".repeat(513), "../../../etc/passwd", `../${TOKEN}`, `${TOKEN}/..`, 7].map(
            (token) => offered({ token }),
          ),
          ...[offered({ url: 7 }), offered({ type: 7 }), null],
        ),
      }),
      "noChallenge: the authority does not offer the challenge http-01, but none",
    ],
    [
      "other challenges",
      changed("/open", offering(offered({ type: "dns-01" }), offered({ type: "tls-alpn-01" }))),
      "noChallenge: the authority does not offer the challenge http-01, but dns-01, tls-alpn-01",
    ],
    [
      "a name of somebody else",
      changed("/open", { identifier: { type: "dns", value: "c.example" } }),
      "badResponse: the authority requires proof of a name that is not in the order",
    ],
    [
      "an authorization of nothing",
      changed("/open", { identifier: null }),
      "badResponse: the authority requires proof of a name that is not in the order",
    ],
    [
      "a request that is refused",
      at("/finalize", { status: 403, ...problem("badCSR") }),
      { code: "badCSR", detail: "about badCSR", subproblems: [] },
    ],
    [
      "an account that may not",
      at("/finalize", { status: 403, ...problem("unauthorized") }),
      { code: "notAllowed", detail: "about unauthorized", subproblems: [] },
    ],
    [
      "the certificate of another key",
      () => (script["/certificate"] = () => ({ body: ca.cert })),
      "unusableCertificate: it is not a valid certificate for the key of the request",
    ],
    [
      "a URL without https",
      at("/dir", { body: { newNonce: "http://127.0.0.1:1/n", newAccount: "x", newOrder: "x" } }),
      "badResponse: the authority refers to http://127.0.0.1:1/n, which is not an https URL",
    ],
  ])("%s", async (_, change, expected) => {
    change();
    const [, code, detail] = /^(\w+): ([^]*)$/.exec(String(expected)) ?? [];
    expect(await failure()).toEqual(typeof expected === "string" ? { code, detail } : expected);
  });

  // RFC 8555, 7.1.4: what is to be proved for a wildcard has the name of its domain, and says that it is one.
  test.each<[names: string[], wildcard: unknown, about: string | undefined]>([
    [["a.example", "*.a.example"], true, "*.a.example"],
    [["a.example", "*.a.example"], false, "a.example"],
    [["*.a.example", "a.example"], undefined, "a.example"],
    [["*.a.example"], true, "*.a.example"],
    [["*.a.example"], undefined, undefined],
    [["a.example"], true, undefined],
  ])(
    "of %j, what is to be proved for a.example with wildcard %j is for %s",
    async (names, wildcard, about) => {
      changed("/order/1", { authorizations: [`${base}/open`] })();
      changed("/open", { status: "expired", identifier: { type: "dns", value: "a.example" }, wildcard })();
      expect(await failure({ names })).toMatchObject(
        about === undefined
          ? { code: "badResponse", detail: "the authority requires proof of a name that is not in the order" }
          : { code: "unauthorized", subproblems: [{ name: about }] },
      );
    },
  );

  test.each([
    ["badCSR", "badCSR", true],
    ["badPublicKey", "badPublicKey", true],
    ["rejectedIdentifier", "rejectedIdentifier", true],
    ["invalidProfile", "invalidProfile", true],
    ["unauthorized", "notAllowed", false],
  ])("an order whose request is refused by %s is over: %s, %s", async (type, code, isOver) => {
    script["/finalize"] = () => ({ status: 403, ...problem(type) });
    expect(await failure()).toMatchObject({ code });
    expect(existsSync(join(folder, "c/order.json"))).toBe(!isOver);
  });

  test("what is replaced is named only where there are renewals, and no profile is taken unasked", async () => {
    changed("/dir", { meta: { profiles: { classic: "", shortlived: "" } } })();
    await complete({}, { id: "x.y", asked: false });
    expect(requests).toContain(NEW_ORDER);
    rmSync(join(folder, "c"), { recursive: true });
    script["/order"] = () => ({ status: 500 });
    await failure({ names: ["a.example", "192.0.2.7"] });
    expect(requests.at(-1)).toMatch(/,"profile":"shortlived"\}$/);
    const refused = (profile: string) => failure({ authority: { profile } });
    expect(await refused("other")).toEqual({
      code: "invalidProfile",
      detail: "other is not known there; it offers classic, shortlived",
    });
    script["/dir"] = usual()["/dir"]!;
    expect(await refused("classic")).toEqual({
      code: "invalidProfile",
      detail: "classic is not known there; it offers no profiles",
    });
  });

  test("the directory is read again after an hour, and when the clock was set back", async () => {
    const { authority } = begin();
    const read = async (at: number): Promise<number> => {
      now = at;
      await authority.directory();
      return requests.length;
    };
    const start = now;
    expect(await read(start)).toBe(1);
    expect(await read(start + 3_600_000)).toBe(1);
    expect(await read(start + 3_600_001)).toBe(2);
    expect(await read(start + 3_600_000)).toBe(3);
  });

  test("an account whose key is damaged or gone is made anew", async () => {
    const file = accountFile(folder, begin().wanted.authority);
    mkdirSync(dirname(file));
    writeFileSync(file, JSON.stringify({ key: "no key", url: `${base}/account/9` }));
    const { authority } = begin();
    const { "/account": account } = script;
    const before: unknown[] = [];
    script["/account"] = (payload, times) => {
      before.push(JSON.parse(readFileSync(file, "utf8")));
      return account!(payload, times);
    };
    await authority.post(`${base}/order`);
    expect(requests).toContain(START[2]);
    const { key } = JSON.parse(readFileSync(file, "utf8")) as { key: string };
    // The key was there before the authority heard of it.
    expect(before).toEqual([{ key }]);
    rmSync(file);
    const { "/order": order } = usual();
    script["/order"] = (payload, times) =>
      times === 2 ? { status: 403, ...problem("accountDoesNotExist") } : order!(payload, times);
    await authority.post(`${base}/order`);
    const made = JSON.parse(readFileSync(file, "utf8")) as { key: string };
    expect([made.key === key, made]).toEqual([
      false,
      { key: expect.any(String), url: `${base}/account/1`, orders: `${base}/orders` },
    ]);
  });

  test("an account is bound with the key in a file", async () => {
    const keyFile = join(folder, "mac");
    const externalAccountBinding = { keyId: "kid-1", keyFile };
    const bound = () => failure({ authority: { externalAccountBinding } });
    for (const wrong of ["", "\n", "a b", "+/=="]) {
      writeFileSync(keyFile, wrong);
      expect(await bound()).toEqual({ code: "file", detail: `${keyFile} is not a key in base64url` });
    }
    const seen: Record<string, string>[] = [];
    const { "/account": account } = script;
    script["/account"] = (payload, times) => {
      seen.push(payload["externalAccountBinding"] as Record<string, string>);
      return account!(payload, times);
    };
    writeFileSync(keyFile, "YWJj-_8=\n");
    await complete({ authority: { externalAccountBinding } });
    const { protected: head, payload, signature } = seen[0]!;
    expect(decoded(head!)).toEqual({ alg: "HS256", kid: "kid-1", url: `${base}/account` });
    expect(Object.keys(decoded(payload!))).toEqual(["crv", "kty", "x", "y"]);
    const mac = createHmac("sha256", Buffer.from("YWJj-_8", "base64url")).update(`${head}.${payload}`);
    expect(signature).toBe(mac.digest("base64url"));
  });

  test.each<[unknown, string | undefined]>([
    ["https://ca.example/a b", "https://ca.example/a%20b"],
    ["HTTP://ca.example", "http://ca.example/"],
    [`https://ca.example/${"x".repeat(481)}`, `https://ca.example/${"x".repeat(481)}`],
    [`https://ca.example/${"x".repeat(482)}`, undefined],
    ["xhttp://ca.example", undefined],
    ["mailto:a@ca.example", undefined],
    ["/t", undefined],
    [7, undefined],
  ])("a page to visit: %j", (value, page) => {
    expect(pageOf(value)).toBe(page);
  });

  test("certificates that do not fit are refused, and counted", async () => {
    const reasons: unknown[] = [];
    const refused = async (make: (csr: string) => string): Promise<void> => {
      const { "/finalize": finalize } = (script = usual());
      let csr = "";
      script["/finalize"] = (payload, times) => ((csr = payload["csr"] as string), finalize!(payload, times));
      script["/certificate"] = () => ({ body: make(csr) });
      reasons.push(await failure());
    };
    await refused((csr) => certificateFor(csr, ["b.example"]));
    await refused((csr) => certificateFor(csr, NAMES, -1));
    await refused((csr) => certificateFor(csr, NAMES, 90, 1.01));
    unfit = "it is too small";
    await refused(certificateFor);
    const code = "unusableCertificate";
    expect(reasons).toEqual([
      { code, detail: "it does not cover a.example" },
      { code, detail: expect.stringMatching(/^it expired on 20/) },
      { code, detail: expect.stringMatching(/^by the clock of this host, it is not valid before 20/) },
      { code, detail: "it is too small" },
    ]);
    const limits = readdirSync(folder).find((name) => name.startsWith("ca-"))!;
    expect(JSON.parse(readFileSync(join(folder, limits, "limits.json"), "utf8"))).toMatchObject({
      issued: { "a.example b.example": Array(4).fill(now) },
    });
  });

  test.each([
    [
      "ends in a moment",
      20 / 86_400,
      -1,
      [],
      /^it ends on 20.*, before the certificate that it would replace$/,
    ],
    ["begins tomorrow", 90, 0.9, [], /^by the clock of this host, it is not valid before 20/],
    ["is for clients", 90, -1, [CLIENTS_ONLY], /^its extended key usage does not allow servers$/],
    [
      "is none",
      90,
      -1,
      [POISON],
      /^clients do not know its critical extension 1\.3\.6\.1\.4\.1\.11129\.2\.4\.3$/,
    ],
  ])("a certificate that %s does not replace a good one", async (_, to, from, more, detail) => {
    await complete();
    const present = readFileSync(join(folder, "c/certificate.pem"), "utf8");
    const { "/finalize": finalize } = (script = usual());
    let csr = "";
    script["/finalize"] = (payload, times) => ((csr = payload["csr"] as string), finalize!(payload, times));
    script["/certificate"] = () => ({ body: certificateFor(csr, NAMES, to, from, more) });
    expect(await failure()).toMatchObject({
      code: "unusableCertificate",
      detail: expect.stringMatching(detail),
    });
    expect(readFileSync(join(folder, "c/certificate.pem"), "utf8")).toBe(present);
  });

  test("a nonce is refused ten times before that is the response", async () => {
    const { "/order": order } = script;
    const refuse = (until: number): void =>
      void (script["/order"] = (payload, times) =>
        times < until ? { status: 400, ...problem("badNonce") } : order!(payload, times));
    refuse(10);
    await complete();
    expect(requests.filter((one) => one === NEW_ORDER)).toHaveLength(10);
    expect(requests.filter((one) => one === "HEAD /nonce")).toHaveLength(1);
    requests = [];
    rmSync(join(folder, "c"), { recursive: true });
    refuse(12);
    expect(await failure()).toMatchObject({ code: "badNonce" });
    expect(requests.filter((one) => one === NEW_ORDER)).toHaveLength(10);
  });

  test("an account that it does not know is made again with its key", async () => {
    await complete();
    const file = accountFile(folder, begin().wanted.authority);
    const { key } = JSON.parse(readFileSync(file, "utf8")) as { key: string };
    [requests, signers] = [[], []];
    script = usual();
    const { "/order": order } = script;
    script["/order"] = (payload, times) =>
      times === 1 ? { status: 403, ...problem("accountDoesNotExist") } : order!(payload, times);
    script["/account"] = () => ({ status: 200, headers: { location: `${base}/account/2` } });
    rmSync(join(folder, "c"), { recursive: true });
    await complete();
    expect(requests.slice(0, 5)).toEqual(["GET /dir", "HEAD /nonce", NEW_ORDER, START[2], NEW_ORDER]);
    expect(signers.slice(0, 4)).toEqual(["/account/1", "jwk", "/account/2", "/account/2"]);
    expect(JSON.parse(readFileSync(file, "utf8"))).toEqual({ key, url: `${base}/account/2` });
  });

  test("another mail address is told once", async () => {
    await complete();
    [requests, script] = [[], usual()];
    rmSync(join(folder, "c"), { recursive: true });
    const more = { authority: { email: "b@example.org" } };
    script["/account/1"] = () => ({});
    await complete(more);
    expect(requests.slice(0, 3)).toEqual([
      "GET /dir",
      "HEAD /nonce",
      'POST /account/1 {"contact":["mailto:b@example.org"]}',
    ]);
    [requests, script] = [[], usual()];
    rmSync(join(folder, "c"), { recursive: true });
    await complete(more);
    expect(requests.slice(0, 3)).toEqual(["GET /dir", "HEAD /nonce", NEW_ORDER]);
  });

  test("who replaces a certificate that it does not know asks once more without it, unless that is not why", async () => {
    const directory = script["/dir"]!({}, 0) as { body: object };
    const replacing = { id: "x.y", asked: false };
    const renewal = { "/dir": () => ({ body: { ...directory.body, renewalInfo: `${base}/renewal` } }) };
    const { "/order": order } = Object.assign(script, renewal);
    script["/order"] = (payload, times) =>
      times === 1 ? { status: 403, ...problem("malformed") } : order!(payload, times);
    await complete({}, replacing);
    const first = NEW_ORDER.replace(/}$/, ',"replaces":"x.y"}');
    expect(requests.slice(3, 5)).toEqual([first, NEW_ORDER]);
    const refused = async (code: string, response: Script): Promise<void> => {
      [requests, script] = [[], { ...usual(), ...renewal }];
      rmSync(join(folder, "c"), { recursive: true });
      script["/order"] = response;
      await expect(complete({}, replacing)).rejects.toMatchObject({ code });
      const orders = new Set(requests.filter((one) => one.startsWith("POST /order ")));
      expect([...orders]).toEqual([first]);
    };
    for (const code of [
      ...["rateLimited", "rejectedIdentifier", "unsupportedIdentifier", "userActionRequired"],
      ...["invalidProfile", "accountDoesNotExist", "badNonce"],
    ])
      await refused(code, () => ({ status: 403, ...problem(code) }));
    await refused("badResponse", () => ({ body: "7" }));
    await refused("unreachable", () => Promise.reject(new Error("cut")));
    expect(unexpected.splice(0)).toHaveLength(1);
  });

  /** Fields, and what an authority that fails might put there. */
  const FIELDS = {
    "/dir": ["newNonce", "newAccount", "newOrder", "renewalInfo", "meta"],
    "/account": ["orders", "status"],
    "/order": ["status"],
    "/order/1": ["status", "authorizations", "finalize", "certificate", "error"],
    "/open": ["status", "identifier", "challenges", "wildcard"],
  };
  const ODD: readonly unknown[] = [null, 7, "", [null], {}, { value: { toString: 1 } }];
  test.each(
    Object.entries(FIELDS).flatMap(([path, fields]) => fields.map((field) => [path, field] as const)),
  )("whatever it is: %s %s", async (path, field) => {
    for (const odd of ODD) {
      script = { ...usual(), "/account/1": () => ({}) };
      changed(path, { [field]: odd })();
      const ended = await complete().then(
        () => "issued",
        (error: unknown) => error,
      );
      if (ended !== "issued") expect(ended).toBeInstanceOf(AcmeError);
      for (const name of readdirSync(folder))
        if (name !== "roots.pem") rmSync(join(folder, name), { recursive: true });
    }
  });

  test("more to prove than was ordered is not followed, and as much as was is", async () => {
    changed("/order/1", { authorizations: ["/proved", "/proved", "/open"].map((path) => base + path) })();
    expect(await failure()).toEqual({
      code: "badResponse",
      detail: "the authority requires proof of more names than the order has",
    });
    expect(requests.at(-1)).toBe("POST /order/1");
  });

  test("a time to come again is by its own clock", async () => {
    const retryAt = async (headers: Record<string, string>): Promise<unknown> => {
      script["/order"] = () => ({ status: 429, headers });
      return ((await failure()) as { retryAt?: number }).retryAt;
    };
    expect(await retryAt({ "retry-after": "60" })).toBe(now + 60_000);
    expect(await retryAt({ "retry-after": "999999999" })).toBe(now + 999_999_999_000);
    for (const text of ["soon", "9999999999"]) expect(await retryAt({ "retry-after": text })).toBeUndefined();
    const [date, earlier] = ["Thu, 01 Jan 2026 00:01:00 GMT", "Thu, 01 Jan 2026 00:00:00 GMT"] as const;
    expect(await retryAt({ "retry-after": date, date: earlier })).toBe(now + 60_000);
    expect(await retryAt({ "retry-after": earlier, date })).toBe(now);
    expect(await retryAt({ "retry-after": date, date: "?" })).toBe(Date.parse(date));
  });
});

describe("looking after a certificate", () => {
  /** Ends what is waited for now, at that time. */
  let wake: ((at: number) => void) | undefined;
  const stepping: Clock = {
    now: () => now,
    elapsed: () => now,
    wait: (ms, signal) =>
      new Promise((resolve) => {
        signal.addEventListener("abort", () => resolve());
        if (ms === 30_000) return;
        waits.push(ms);
        wake = (at) => {
          now = at;
          resolve();
        };
      }),
  };
  /** Lets time pass until what is waited for, or to another time, and what is done then be done. */
  async function pass(to = now + waits.at(-1)!): Promise<void> {
    const woken = wake!;
    wake = undefined;
    woken(to);
    await rested();
  }
  const rested = (): Promise<void> => eventually(() => wake !== undefined, "for it to wait");

  let engine: AcmeEngine;
  beforeEach(() => {
    wake = undefined;
    engine = new AcmeEngine(folder, host, stepping);
  });
  afterEach(() => engine.stop());
  async function start(...wanted: OrderedCertificate[]): Promise<void> {
    engine.lookAfter(wanted);
    await rested();
  }
  /** Ends as a process does, and begins again with what is on the disk. */
  async function restart(...wanted: OrderedCertificate[]): Promise<void> {
    await engine.stop();
    engine = new AcmeEngine(folder, host, stepping);
    [requests, lines, waits, wake, script] = [[], [], [], undefined, { ...script, ...usual() }];
    await start(...wanted);
  }

  const of = "certificate for a.example, b.example";
  const shown = { id: "ca-1", names: NAMES, authority: "ca" };
  const iso = (at: number): string => new Date(at).toISOString();
  const fileOf = (name: string): string => join(folder, "certificates/ca-1", name);
  const history = (): unknown => JSON.parse(readFileSync(fileOf("history.json"), "utf8"));
  const put = (name: string, value: object | string): void => {
    mkdirSync(dirname(fileOf(name)), { recursive: true });
    writeFileSync(fileOf(name), typeof value === "string" ? value : JSON.stringify(value));
  };
  const [MINUTE, HOUR] = [60_000, 3_600_000];
  const ADDRESS = { holderAddress: "192.0.2.9" };
  const OWN_ADDRESS = { holderAddress: "127.0.0.1" };
  /** One that was kept before. */
  const keep = async (to = 90): Promise<string> => {
    const { key, cert } = await issue({ type: "ec", names: NAMES, from: -100, to });
    put("certificate.pem", key + cert);
    return cert;
  };
  const untilOf = (cert: string): number => Date.parse(new X509Certificate(cert).validTo);
  const fingerprint = (): string => new X509Certificate(installed!.cert).fingerprint256;
  const failed = { code: "caa", message: "m", fix: "f" };

  test("says each step", async () => {
    const { "/order": order } = script;
    const during: unknown[] = [];
    script["/order"] = (payload, times) => {
      during.push(...engine.status(), existsSync(fileOf("history.json")));
      return order!(payload, times);
    };
    await start(begin().wanted);
    expect(during).toEqual([{ ...shown, state: "ordering" }, false]);
    const status = engine.status()[0]!;
    expect(Math.abs(status.notAfter! - Date.now() - 90 * DAY)).toBeLessThan(20_000);
    const until = iso(status.notAfter!);
    const valid = { ...shown, state: "valid", issuer: "Let's Scripted", notAfter: status.notAfter };
    // Nothing failed, so that the next attempt is the renewal.
    const { nextAttempt } = status;
    expect(nextAttempt).toBeGreaterThan(Date.now());
    expect(status).toEqual({ ...valid, nextAttempt, renewAt: nextAttempt });
    expect(lines).toEqual([
      `info ${of}: ordered, from ca`,
      "installed ca-1",
      `info ${of}: issued by Let's Scripted, valid until ${until}`,
    ]);
    expect(installed!.key + installed!.cert).toBe(readFileSync(fileOf("certificate.pem"), "utf8"));
    const renewal = { certificate: fingerprint(), askAgainAt: now + 6 * HOUR, failures: 0 };
    expect(history()).toEqual({ failures: 0, issuedAt: now, renewal });
    expect(waits).toEqual([10 * MINUTE]);
    await restart(begin().wanted);
    expect([engine.status(), requests, lines, waits]).toEqual([[status], [], [], [10 * MINUTE]]);
    during.length = 0;
    script["/account/1"] = () => ({});
    const { "/order": again } = script;
    script["/order"] = (payload, times) => (during.push(...engine.status()), again!(payload, times));
    expect(await engine.renewNow("b.example")).toEqual({ ok: true, value: "renewed: a.example, b.example" });
    expect([lines[0], during]).toEqual([
      `info ${of}: renewed, from ca`,
      [{ ...valid, renewAt: nextAttempt, state: "ordering" }],
    ]);
    expect(await engine.renewNow("c.example")).toEqual({
      ok: false,
      problems: [
        expect.objectContaining({
          ...{ code: "acme.unknown-name", path: "c.example", allowed: "a.example, b.example" },
          message: "is not a name of a certificate that portico gets from an authority",
        }),
      ],
    });
    await engine.stop();
    engine.lookAfter([begin().wanted]);
    expect(engine.status()).toEqual([]);
    expect(await engine.renewNow()).toMatchObject({
      problems: [{ path: "", allowed: "the config has no such certificate" }],
    });
  });

  test("says why it failed, what to do, and when it is tried again", async () => {
    script["/order"] = () => ({ status: 403, ...problem("caa") });
    await start(begin().wanted);
    const { lastError, nextAttempt, ...status } = engine.status()[0]!;
    expect(status).toEqual({ ...shown, state: "waiting" });
    const message = "a.example, b.example: a CAA record forbids this authority: about caa";
    const fix =
      "Add the authority ca to the CAA records of a.example or its parent domain, or remove the CAA records.";
    expect(lastError).toEqual({ code: "caa", message, fix, at: now });
    expect(lines[1]).toBe(
      `error certificate not issued (caa): ${message}; next attempt at ${iso(nextAttempt!)}; fix: ${fix}`,
    );
    expect(history()).toEqual({ failures: 1, lastFailure: lastError });
    expect(await engine.renewNow()).toEqual({
      ok: false,
      problems: [
        expect.objectContaining({
          ...{ code: "acme.not-issued", path: "a.example, b.example", fix },
          message: `was not issued by ca: ${message}`,
        }),
      ],
    });
    expect(requests.filter((one) => one === NEW_ORDER)).toHaveLength(2);
    expect(history()).toEqual({ failures: 2, lastFailure: lastError });
    // The same goes on as it is; what is changed is tried at once.
    engine.lookAfter([begin().wanted]);
    expect(engine.status()[0]!.state).toBe("waiting");
    script = { ...usual(), "/account/1": () => ({}) };
    engine.lookAfter([begin({ authority: { email: "a@example.org" } }).wanted]);
    await eventually(() => engine.status()[0]!.state === "valid");
  });

  test("tries again when it may, and before only for an administrator, once a minute", async () => {
    const { "/order": order } = script;
    script["/order"] = () => ({ status: 500 });
    await start(begin().wanted);
    const nextAttempt = engine.status()[0]!.nextAttempt!;
    expect(waits).toEqual([nextAttempt - now]);
    expect(nextAttempt - now).toBeLessThan(1.1 * MINUTE);
    script["/order"] = () => ({ status: 429, headers: { "retry-after": "7200" } });
    await pass();
    const retryAt = now + 2 * HOUR;
    const { lastError } = engine.status()[0]!;
    expect(lastError).toMatchObject({ code: "rateLimited", at: now });
    expect(history()).toEqual({ failures: 2, lastFailure: lastError, retryAt });
    const before = requests.length;
    const { message, fix } = lastError!;
    expect(fix).toMatch(/`portico certificates renew a\.example` tries before its end\.$/);
    const refused = { problems: [{ fix, message: `was not issued by ca: ${message}` }] };
    expect(await engine.renewNow()).toMatchObject(refused);
    await pass();
    expect(requests).toHaveLength(before);
    now += MINUTE;
    expect(await engine.renewNow()).toMatchObject(refused);
    expect(requests.length).toBeGreaterThan(before);
    expect(history()).toMatchObject({ failures: 3, retryAt: now + 2 * HOUR });
    put("history.json", { failures: 2, lastFailure: lastError, retryAt });
    await restart(begin().wanted);
    expect(requests).toEqual([]);
    const waiting = { state: "waiting", lastError, nextAttempt: retryAt };
    expect(engine.status()).toEqual([{ ...shown, ...waiting }]);
    script["/order"] = order!;
    await pass(retryAt - 7);
    expect([requests, waits.at(-1)]).toEqual([[], 7]);
    await pass();
    expect(engine.status()[0]!.state).toBe("valid");
    expect(history()).toMatchObject({ failures: 0, issuedAt: now });
    expect(Object.keys(history() as object)).toEqual(["failures", "issuedAt", "renewal"]);
  });

  test("is not asked for before the time that the authority set because the config has changed", async () => {
    script["/order"] = () => ({ status: 429, headers: { "retry-after": "7200" } });
    await start(begin().wanted);
    const retryAt = now + 2 * HOUR;
    requests = [];
    wake = undefined;
    engine.lookAfter([{ ...begin().wanted, files: "others" }]);
    await rested();
    expect([requests, engine.status()[0]!.nextAttempt]).toEqual([[], retryAt]);
    await pass(retryAt - 1);
    expect([requests, waits.at(-1)]).toEqual([[], 1]);
    script = { ...usual(), "/account/1": () => ({}) };
    await pass();
    expect(engine.status()[0]!.state).toBe("valid");
  });

  describe("with a DNS program whose removal hangs", () => {
    const removing = (): number =>
      existsSync(join(folder, "calls"))
        ? readFileSync(join(folder, "calls"), "utf8").trim().split("\n").length
        : 0;
    const begun = (timeoutMs: number): OrderedCertificate => {
      const command = join(folder, "record");
      const text = `#!/bin/sh\n[ $1 = present ] && exit 0\necho $2 >> ${folder}/calls\nsleep 60\n`;
      writeFileSync(command, text, { mode: 0o755 });
      script["/dns"] = script["/challenge"]!;
      const dns = { type: "program", command, timeoutMs, nameServers: [], waitMs: 1_000 } as const;
      return begin({ challenge: "dns-01", authority: { dns } as never }).wanted;
    };

    test("the certificate is used at once, and a stop waits briefly", async () => {
      await start(begun(60_000));
      await eventually(() => removing() === 1, "for cleanup", { ms: 9_000, seen: () => lines.join("\n") });
      expect([engine.status()[0]!.state, installed === undefined]).toEqual(["valid", false]);
      const began = Date.now();
      await engine.stop();
      expect(Date.now() - began).toBeLessThan(4_000);
      expect(lines.at(-1)).toMatch(
        /^warn a DNS record was not removed after use: .*cleanup .* was killed, as portico stops$/,
      );
    });

    test("the next order waits for its end, and the other records are left", async () => {
      changed("/order/1", { authorizations: [`${base}/first`, `${base}/open`] })();
      script["/first"] = async (...asked) => {
        const said = await script["/open"]!(...asked);
        return { body: { ...(said.body as object), identifier: { type: "dns", value: "a.example" } } };
      };
      await start(begun(1_000));
      await eventually(() => removing() === 1, "for cleanup", { ms: 9_000, seen: () => lines.join("\n") });
      script = { ...usual(), "/dns": () => ({}), "/account/1": () => ({}) };
      script["/dns"] = script["/challenge"]!;
      expect(await engine.renewNow()).toMatchObject({ ok: true });
      const calls = lines.map((line) => /(present|cleanup) (\S+)/.exec(line)?.slice(1).join(" "));
      expect(calls.filter((call) => call !== undefined)).toEqual([
        "present _acme-challenge.a.example",
        "present _acme-challenge.b.example",
        "cleanup _acme-challenge.a.example",
        "cleanup _acme-challenge.a.example",
        "present _acme-challenge.b.example",
      ]);
    });
  });

  test("goes on with an order that was cut off, unless that was after a failure", async () => {
    const cutOff = async (more: object): Promise<void> => {
      put("order.json", { key: (await issue({ type: "ec" })).key, since: now, order: `${base}/order/1` });
      put("history.json", more);
    };
    await keep();
    await cutOff({ failures: 1, lastFailure: { ...failed, at: now } });
    await start(begin().wanted);
    expect([lines, engine.status()[0]!.state, responded]).toEqual([[], "waiting", []]);
    await cutOff({ failures: 0 });
    await restart(begin().wanted);
    expect(lines.slice(0, 2)).toEqual([`info ${of}: the order continues, from ca`, "installed ca-1"]);
    expect(requests).toContain("POST /order/1");
    expect(requests).not.toContain(NEW_ORDER);
    // The next one is not.
    script = { ...usual(), "/account/1": () => ({}) };
    lines = [];
    await engine.renewNow();
    expect(lines[0]).toBe(`info ${of}: renewed, from ca`);
    // One that another host made unnecessary is forgotten, and one that is due is not.
    const shared = begin({ authority: OWN_ADDRESS }).wanted;
    await keep();
    await cutOff({ failures: 0 });
    await restart(shared);
    expect([lines, existsSync(fileOf("order.json")), waits]).toEqual([["installed ca-1"], false, [5_000]]);
    await keep(3);
    await cutOff({ failures: 0 });
    await restart(shared);
    expect(lines.slice(0, 3)).toEqual([
      ...["installed ca-1", `info ${of}: the order continues, from ca`, "installed ca-1"],
    ]);
    expect(lines).toHaveLength(4);
  });

  test.each<[string, object]>([
    ["a failure that is none", { lastFailure: 7 }],
    ["a failure at no time", { lastFailure: failed }],
    ["a failure without words", { lastFailure: { at: 1 } }],
    ["a time in words", { retryAt: "soon", issuedAt: {} }],
    ["a time without end", { retryAt: 1e300, issuedAt: 1e300 }],
    ["a renewal at no time", { renewal: { askAgainAt: "soon", failures: 0 } }],
    ["a renewal that is none", { renewal: 7 }],
    ["a window without times", { renewal: { askAgainAt: 1, failures: 0, window: { start: "a", end: [] } } }],
    ["a window that is none", { renewal: { askAgainAt: 1, failures: 0, window: null } }],
  ])("goes on where its file says %s", async (_, damaged) => {
    const { fingerprint256 } = new X509Certificate(await keep());
    const { renewal } = damaged as { renewal?: object };
    const named = typeof renewal === "object" ? { renewal: { ...renewal, certificate: fingerprint256 } } : {};
    put("history.json", { failures: 1, ...damaged, ...named });
    await start(begin().wanted);
    const wait = engine.status()[0]!.nextAttempt! - now;
    expect(wait).toBeGreaterThanOrEqual(0);
    expect(wait).toBeLessThan(60 * DAY);
    expect(waits).toEqual([10 * MINUTE]);
    expect(lines).toEqual([]);
  });

  describe("asks the authority when to renew", () => {
    const RENEWAL = "/renewal/AQI.AQ";
    const wanted = () => begin().wanted;
    /** With its responses, the last one again and again. */
    async function startWith(...responses: Said[]): Promise<void> {
      keyIdentifier = "0102";
      const directory = script["/dir"]!({}, 0) as { body: object };
      script["/dir"] = () => ({ body: { ...directory.body, renewalInfo: `${base}/renewal` } });
      script[RENEWAL] = () => (responses.length > 1 ? responses.shift()! : responses[0]!);
      await start(wanted());
    }
    const asked = (): number => requests.filter((one) => one === `GET ${RENEWAL}`).length;
    const window = (start: number, end: number, more: object = {}): Said => ({
      body: { suggestedWindow: { start: iso(start), end: iso(end) }, ...more },
      headers: { "retry-after": "7200" },
    });

    test("as often as it likes, and keeps to the last response where there is none", async () => {
      const [start, end] = [now + 10 * DAY, now + 11 * DAY];
      await startWith(
        window(start, end),
        { status: 503 },
        window(end, end),
        { body: {} },
        window(now - 2 * DAY, now - DAY, { explanationURL: "https://ca.example/why" }),
      );
      const about = { certificate: fingerprint(), window: { start, end } };
      const issuedAt = now;
      const is = (failures: number, askAgainAt: number) =>
        expect(history()).toEqual({ failures: 0, issuedAt, renewal: { ...about, failures, askAgainAt } });
      is(0, now + 2 * HOUR);
      const { nextAttempt } = engine.status()[0]!;
      expect([nextAttempt! >= start, nextAttempt! < end]).toEqual([true, true]);
      expect(waits).toEqual([10 * MINUTE]);
      await pass(now + 2 * HOUR - 7);
      expect([asked(), waits.at(-1)]).toEqual([1, 7]);
      await pass();
      is(1, now + HOUR);
      await pass(now + HOUR);
      is(2, now + 2 * HOUR);
      await pass(now + 2 * HOUR);
      is(3, now + 4 * HOUR);
      // Such an order is not counted.
      const limits = readdirSync(folder).find((name) => name.startsWith("ca-"))!;
      const full = { "a.example b.example": [now, now, now, now] };
      writeFileSync(join(folder, limits, "limits.json"), JSON.stringify({ issued: full }));
      const { "/dir": directory, [RENEWAL]: renewal } = script;
      script = { ...usual(), "/dir": directory!, [RENEWAL]: renewal!, "/account/1": () => ({}) };
      [lines, requests] = [[], []];
      await engine.stop();
      engine = new AcmeEngine(folder, host, stepping);
      engine.lookAfter([wanted()]);
      await pass(now + 4 * HOUR);
      expect(lines.slice(0, 3)).toEqual([
        `info ${of}: the authority asks to renew it now (https://ca.example/why)`,
        `info ${of}: renewed, from ca`,
        "installed ca-1",
      ]);
      expect(requests).toContain(NEW_ORDER.replace(/}$/, ',"replaces":"AQI.AQ"}'));
    });
  });

  test("a certificate that is not needed is not a failure where the limits forbid it, and one that is is", async () => {
    const account = dirname(accountFile(folder, begin().wanted.authority));
    mkdirSync(account);
    const full = { "a.example b.example": [now, now, now, now] };
    writeFileSync(join(account, "limits.json"), JSON.stringify({ issued: full }));
    await keep();
    put("history.json", { failures: 0, issuedAt: now });
    await start(begin().wanted);
    const why =
      "a.example, b.example: the authority's rate limit is reached: portico allows at most 4 certificates for the same names in seven days, to stay below the authority's limit";
    expect(await engine.renewNow()).toMatchObject({
      problems: [{ message: `was not issued by ca: ${why}` }],
    });
    expect(lines).toEqual([`info ${of}: renewed, from ca`, `info certificate not renewed: ${why}`]);
    expect(history()).toMatchObject({ failures: 0, issuedAt: now });
    rmSync(fileOf("certificate.pem"));
    await restart(begin().wanted);
    expect(history()).toMatchObject({ failures: 1, retryAt: now + 7 * DAY });
    expect(lines[1]).toMatch(/^error certificate not issued \(rateLimited\): /);
    expect(requests).toEqual(["GET /dir"]);
  });

  test("without a certificate sleeps, whatever was said of the one before", async () => {
    const renewal = { certificate: "AA", askAgainAt: now - DAY, failures: 0 };
    put("history.json", { failures: 1, lastFailure: { ...failed, at: now }, renewal });
    await start(begin().wanted);
    expect([waits, requests]).toEqual([[10 * MINUTE], []]);
  });

  test("does not wait longer because the clock was set back", async () => {
    put("history.json", { failures: 1, lastFailure: { ...failed, at: now + DAY } });
    await start(begin().wanted);
    expect(history()).toEqual({ failures: 1, lastFailure: { ...failed, at: now } });
    expect(engine.status()[0]!.nextAttempt).toBeLessThan(now + 11 * MINUTE);
  });

  test("says which files it cannot use", async () => {
    const REASON = "(is a directory)";
    mkdirSync(fileOf("history.json"), { recursive: true });
    script["/order"] = () => ({ status: 403, ...problem("caa") });
    await start(begin().wanted);
    expect(lines[0]).toContain(`certificates: ${fileOf("history.json")} cannot be written `);
    expect(lines[1]).toMatch(/^error certificate not issued \(file\): /);
    expect(lines[1]).toContain(`${fileOf("history.json")} cannot be read ${REASON}; next attempt at `);
    lines = [];
    rmSync(fileOf("history.json"), { recursive: true });
    mkdirSync(fileOf("certificate.pem"));
    await restart(begin({ authority: ADDRESS }).wanted);
    expect(lines).toEqual([`error certificates: ${fileOf("certificate.pem")} cannot be read ${REASON}`]);
  });

  test("a stop in the middle is no failure, ends with what was begun, and begins nothing", async () => {
    const all = ["a", "b", "c", "d", "e"].map((id) => begin({ id }).wanted);
    let arrived = 0;
    let release!: () => void;
    const held = new Promise<void>((resolve) => (release = resolve));
    script["/order"] = async () => (arrived++, await held, { status: 500 });
    engine.lookAfter(all);
    await eventually(() => arrived === 4);
    const asked = engine.renewNow();
    const stopped = engine.stop();
    setTimeout(release, 20);
    const first = await Promise.race([asked, stopped.then(() => sleep(0))]);
    expect(first).toMatchObject({
      problems: Array(5).fill({ message: `was not issued by ca: ${LEFT.message}`, fix: LEFT.fix }),
    });
    await stopped;
    expect(lines).toEqual(Array(4).fill(`info ${of}: ordered, from ca`));
    // Which four of them come first is decided by how fast their files are read.
    const having = (file: string): number =>
      all.filter(({ id }) => existsSync(join(folder, "certificates", id, file))).length;
    expect([having("history.json"), having("order.json")]).toEqual([0, 4]);
  });

  test("waits for an address, and asks nobody meanwhile", async () => {
    await start(begin({ authority: ADDRESS }).wanted);
    expect(lines).toEqual([`info ${of}: waiting for the address 192.0.2.9; no request to ca`]);
    expect(engine.status()).toEqual([{ ...shown, state: "none", waitsFor: "192.0.2.9" }]);
    expect(await engine.renewNow()).toEqual({
      ok: false,
      problems: [
        expect.objectContaining({
          code: "acme.not-issued",
          message:
            "was not issued by ca: this host does not have the address 192.0.2.9; only the host with this address requests certificates",
          fix: "Run the command on the host that has 192.0.2.9.",
        }),
      ],
    });
    await pass();
    expect([requests, new Set(waits), lines.length]).toEqual([[], new Set([5_000]), 1]);
  });

  test("takes what another host got, unless listeners cannot use it", async () => {
    const { wanted } = begin({ authority: ADDRESS });
    await start(wanted);
    lines = [];
    const cert = await keep();
    const text = readFileSync(fileOf("certificate.pem"), "utf8");
    await pass();
    const until = iso(untilOf(cert));
    expect(lines).toEqual([
      "installed ca-1",
      `info ${of}: taken from another host, issued by a.example, valid until ${until}`,
    ]);
    expect(installed!.key + installed!.cert).toBe(text.trimEnd() + "\n");
    const status = [{ ...shown, state: "valid", issuer: "a.example", notAfter: untilOf(cert) }];
    expect(engine.status()).toMatchObject(status);
    // The same once more is no news.
    rmSync(fileOf("certificate.pem"));
    put("certificate.pem", text);
    await pass();
    expect(lines).toHaveLength(2);
    await restart(wanted);
    expect(lines).toEqual([
      "installed ca-1",
      `info ${of}: waiting for the address 192.0.2.9; no request to ca`,
    ]);
    lines = [];
    unfit = "it is too small";
    await keep();
    await pass();
    expect(lines).toEqual([`warn ${of}: the files in the state directory are not used: it is too small`]);
    expect(engine.status()).toEqual([{ ...shown, state: "none", waitsFor: "192.0.2.9" }]);
  });
});
