import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { run } from "../../src/cli/program.js";
import { diagnose } from "../../src/diagnosis/rows.js";
import { parseConfig, ProblemError, type ProxyConfigInput } from "../../src/model/index.js";
import { askMaster } from "../../src/runtime/supervisor/askMaster.js";
import type { ListedCertificate } from "../../src/runtime/supervisor/certificateList.js";
import { freePorts } from "../kit/ports.js";
import { openFolder, Portico } from "../kit/portico.js";
import { eventually } from "../kit/waiting.js";
import { type Answer, Between, type Step } from "./between.js";
import { TestCa } from "./ca.js";
import { issued as issuedTo, startStage } from "./stage.js";

/**
 * What an authority says in a problem document (RFC 8555, 6.7), and what `portico certificates` and `doctor` say then. Pebble has
 * few of these by itself, so single answers of it are replaced; all requests are signed ones that it accepts.
 */

let ca: TestCa;
let between: Between;
beforeAll(async () => {
  ca = await TestCa.start();
  between = await Between.start(ca);
});
afterAll(async () => {
  await between.stop();
  await ca.stop();
});

/** An authority of its own has an account of its own; the mail address says which one it is. */
interface Case {
  readonly authority: string;
  readonly name: string;
  readonly email: string;
}

const caseOf = (i: number): Case => ({
  authority: `ca${i}`,
  name: `row${i}.example.net`,
  email: `row${i}@example.org`,
});

function config(cases: readonly Case[], httpsPort: number): ProxyConfigInput {
  const respond = { type: "respond" as const, status: 200 };
  const acme = ({ authority, name }: Case) => ({ acme: { authority, names: [name] } });
  const [first, ...further] = cases;
  const certificates = further.length === 0 ? {} : { certificates: further.map(acme) };
  return {
    version: 1,
    workers: 1,
    certificateAuthorities: cases.map(({ authority, email }) => ({
      name: authority,
      directory: between.directory,
      agreeToTerms: true,
      email,
      roots: ca.roots,
      challenge: "http-01",
    })),
    listeners: [
      { name: "http", address: "127.0.0.1", port: ca.httpPort, protocol: "http" },
      {
        name: "https",
        address: "127.0.0.1",
        port: httpsPort,
        protocol: "https",
        tls: { ...acme(first!), ...certificates, policy: "mozilla-intermediate" },
      },
    ],
    virtualServers: [
      {
        name: "all",
        serverNames: ["_"],
        default: true,
        listeners: ["http", "https"],
        routes: [{ name: "ok", path: "/", match: "prefix", action: respond }],
      },
    ],
  };
}

const problemOf = (type: string, detail: string, more: object = {}) => ({
  type: `urn:ietf:params:acme:error:${type}`,
  detail,
  ...more,
});

type Place = "newAccount" | "newOrder" | "authorization" | "finalize" | "order" | "issuance";

const PATHS: Readonly<Record<Place, string>> = {
  newAccount: "/sign-me-up",
  newOrder: "/order-plz",
  authorization: "/authZ/",
  finalize: "/finalize-order/",
  order: "/my-order/",
  /** The same once all names are proved, and the certificate was asked for. */
  issuance: "/my-order/",
};

/** What stands in place of the authority's answer: a refusal, or the state of a resource with the reason for it. */
function replaced(place: Place, problem: object, step: Step, answer: Answer): Answer | undefined {
  if (!step.path.startsWith(PATHS[place])) return undefined;
  if (place === "authorization" || place === "order" || place === "issuance") {
    const value = JSON.parse(answer.body) as Record<string, unknown>;
    if (place === "issuance" && ["pending", "ready"].includes(value["status"] as string)) return undefined;
    const challenges = (value["challenges"] as object[] | undefined)?.map((one) => ({
      ...one,
      status: "invalid",
      error: problem,
    }));
    const now =
      challenges === undefined ? { status: "invalid", error: problem } : { status: "invalid", challenges };
    return { ...answer, body: JSON.stringify({ ...value, ...now }) };
  }
  const headers = { ...answer.headers, "content-type": "application/problem+json" };
  return { status: 403, headers, body: JSON.stringify(problem) };
}

interface Said {
  /** Of `portico certificates`, after the name. */
  readonly error: string;
  readonly fix: string;
  /** Row of `doctor`. */
  readonly row: string;
}

const PAGE = "https://ca.example.net/agree?a=1";
const NAME = "NAME";

const ROWS: readonly (readonly [Place, object, Said])[] = [
  [
    "authorization",
    problemOf("dns", "DNS problem: NXDOMAIN looking up A for NAME"),
    {
      error: "the authority could not look up the name: DNS problem: NXDOMAIN looking up A for NAME",
      fix: "Give NAME an A record (and AAAA only if this host has IPv6) that leads to this host, and check that its name servers answer.",
      row: "acme-dns",
    },
  ],
  [
    "authorization",
    problemOf("tls", "Fetching https://NAME/: remote error: tls: handshake failure"),
    {
      error:
        "the authority was redirected to https, and its TLS handshake failed: Fetching https://NAME/: remote error: tls: handshake failure",
      fix: "Remove redirects to https that something in front of this host makes, or repair its TLS.",
      row: "acme-port",
    },
  ],
  [
    "authorization",
    problemOf("connection", "192.0.2.1: Timeout during connect (likely firewall problem)"),
    {
      error:
        "the authority could not connect to port 80: 192.0.2.1: Timeout during connect (likely firewall problem)",
      fix: "Let the internet reach port 80 of this host by NAME: check firewall, router and the name's A and AAAA records.",
      row: "acme-port",
    },
  ],
  [
    "authorization",
    problemOf("incorrectResponse", "The key authorization file from the server did not match"),
    {
      error:
        "the authority did not get the expected proof: The key authorization file from the server did not match",
      fix: "Check that NAME leads to this host by every A and AAAA record, and that nothing in front of it answers on port 80 in its place.",
      row: "acme-dns",
    },
  ],
  [
    "finalize",
    problemOf("caa", "Rechecking CAA for NAME", {
      subproblems: [
        problemOf("caa", "CAA record for NAME prevents issuance", {
          identifier: { type: "dns", value: NAME },
        }),
      ],
    }),
    {
      error: "a CAA record forbids this authority: CAA record for NAME prevents issuance",
      fix: "Let the CAA record of NAME or its parent name the authority AUTHORITY, or remove the record.",
      row: "acme-dns",
    },
  ],
  [
    "newOrder",
    problemOf("userActionRequired", "Terms of service have changed", { instance: PAGE }),
    {
      error: "the authority waits for somebody to agree to something: Terms of service have changed",
      fix: `Visit ${PAGE}.`,
      row: "acme-account",
    },
  ],
  [
    "newAccount",
    problemOf("userActionRequired", "Confirm the address"),
    {
      error: "the authority waits for somebody to agree to something: Confirm the address",
      fix: "Log in at the authority, and do what it asks for.",
      row: "acme-account",
    },
  ],
  [
    "newAccount",
    problemOf("invalidContact", "invalid contact domain"),
    {
      error: "the authority refuses the mail address: invalid contact domain",
      fix: "Give a mail address that receives mail as email of AUTHORITY.",
      row: "acme-account",
    },
  ],
  [
    "newAccount",
    problemOf("externalAccountRequired", "An account must be bound"),
    {
      error: "the authority wants an account of its own first: An account must be bound",
      fix: "Create a key at the authority, and give it as externalAccountBinding of AUTHORITY.",
      row: "acme-account",
    },
  ],
  [
    "newAccount",
    problemOf("badSignatureAlgorithm", "RS256 only"),
    {
      error: "the authority does not take account keys of type ES256: RS256 only",
      fix: "Use another authority: accounts are signed with ES256, which RFC 8555 recommends.",
      row: "acme-certificates",
    },
  ],
  [
    "newOrder",
    problemOf("rateLimited", "too many certificates (50) already issued for example.net"),
    {
      error:
        "the authority's rate limit is reached: too many certificates (50) already issued for example.net",
      fix: "Wait: it is tried again when the authority allows it. To try things out, use the authority's staging directory.",
      row: "acme-limit",
    },
  ],
  [
    "newOrder",
    problemOf("unsupportedIdentifier", "no names of type dns"),
    {
      error: "the authority does not know this kind of name: no names of type dns",
      fix: "Remove NAME from the names, or use an authority that issues for it.",
      row: "acme-certificates",
    },
  ],
  ...(["finalize", "issuance"] as const).map(
    (place) =>
      [
        place,
        problemOf("unauthorized", "the account is not allowed to finalize"),
        {
          error:
            "the authority does not allow the account this certificate: the account is not allowed to finalize",
          fix: "Ask the authority what the account of AUTHORITY lacks: all names were proved. Portico tries again later.",
          row: "acme-account",
        },
      ] as const,
  ),
  [
    "finalize",
    problemOf("badCSR", "unsupported curve"),
    {
      error: "the authority refuses the request, often because of its key: unsupported curve",
      fix: "Give another keyType than ecdsa-p256, or fewer names.",
      row: "acme-certificates",
    },
  ],
  [
    "finalize",
    problemOf("badPublicKey", "weak"),
    {
      error: "the authority refuses the key: weak",
      fix: "Give another keyType than ecdsa-p256.",
      row: "acme-certificates",
    },
  ],
  [
    "order",
    problemOf("serverInternal", "the signer failed"),
    {
      error: "the authority failed: the signer failed",
      fix: "Portico tries again later. If it persists, look at the authority's status page.",
      row: "acme-authority",
    },
  ],
  [
    "newOrder",
    { type: "about:blank", detail: "Forbidden by a gateway" },
    {
      error: "the authority does not understand the request: Forbidden by a gateway",
      fix: "Check that directory of AUTHORITY is an ACME directory (RFC 8555). Portico tries again later.",
      row: "acme-certificates",
    },
  ],
];

describe("what is said of a certificate that is not issued:", () => {
  let portico: Portico;
  let control: string;
  let httpsPort: number;

  beforeAll(async () => {
    [httpsPort] = (await freePorts(1)) as [number];
    const folder = openFolder();
    for (const name of ["state", "run"]) mkdirSync(join(folder, name));
    control = join(folder, "run/control.sock");
    const env = { STATE_DIRECTORY: join(folder, "state"), RUNTIME_DIRECTORY: join(folder, "run") };
    const rows = new Map<string, number>();
    between.after = (step, answer) => {
      const account = step.account ?? answer.headers["location"];
      if (account === undefined) return Promise.resolve();
      const [contact] = (step.payload as { contact?: string[] } | undefined)?.contact ?? [];
      if (contact !== undefined) rows.set(account, Number(/\d+/.exec(contact)![0]));
      const i = rows.get(account)!;
      const [place, problem] = ROWS[i]!;
      return Promise.resolve(replaced(place, withName(problem, i), step, answer));
    };
    // One front end for all rows: each is an order at an authority of its own.
    portico = await Portico.start(config(Array.from(ROWS.keys(), caseOf), httpsPort), { env });
  });
  afterAll(() => portico?.stop());

  const withName = (problem: object, i: number): object =>
    JSON.parse(JSON.stringify(problem).replaceAll(NAME, caseOf(i).name)) as object;

  async function failed(name: string): Promise<ListedCertificate> {
    let found: ListedCertificate | undefined;
    await eventually(
      async () => {
        const outcome = await askMaster(control, { command: "certificates" }, 5_000);
        const listed = (outcome.ok && outcome.value.certificates) || [];
        found = listed.find(({ names }) => names[0] === name);
        return found?.state === "waiting";
      },
      "for the failure",
      { seen: () => portico.errors, everyMs: 100 },
    );
    return found!;
  }

  test.each(ROWS.map((row, i) => [...row, i] as const))("%s: %j", async (_place, _problem, said, i) => {
    const { authority, name } = caseOf(i);
    const named = (text: string): string => text.replaceAll(NAME, name).replace("AUTHORITY", authority);
    const certificate = await failed(name);
    const text = { out: "" };
    const code = await run(["certificates", "--control", control], {
      out: (more) => void (text.out += more),
      err: () => undefined,
    });
    expect(code).toBe(1);
    const lines = text.out.split("\n");
    const [error, toDo] = lines.slice(lines.findIndex((line) => line.startsWith(`${name} `)) + 1);
    expect(error).toBe(`  last error, 0 min ago: ${name}: ${named(said.error)}`);
    expect(toDo).toBe(`  fix: ${named(said.fix)}`);
    const parsed = parseConfig(config([caseOf(i)], httpsPort));
    if (!parsed.ok) throw new ProblemError(parsed.problems);
    const evidence = {
      place: "host",
      config: parsed.value,
      responses: [],
      certificates: [certificate],
    } as const;
    const rows = diagnose(evidence).filter(({ id, status }) => id.startsWith("acme-") && status === "failed");
    expect(rows.map(({ id }) => id)).toEqual([said.row]);
    expect(rows[0]!.fix).toContain(named(said.fix));
  });
});

test("a certificate that was replaced already is ordered without saying that it is (RFC 9773, 5)", async () => {
  const stage = await startStage({}, ca);
  const { engine, wanted } = stage;
  const one = wanted(["a.example.net"]);
  const certificates = engine();
  certificates.lookAfter([one]);
  await issuedTo(stage, one.id);
  const orders: unknown[] = [];
  stage.between.before = ({ path, payload }) => {
    if (!path.startsWith(PATHS.newOrder)) return Promise.resolve();
    orders.push((payload as { replaces?: string }).replaces);
    if (orders.length > 1) return Promise.resolve();
    const body = JSON.stringify(problemOf("alreadyReplaced", "the certificate was replaced"));
    return Promise.resolve({ status: 409, headers: {}, body });
  };
  expect(await certificates.renewNow()).toMatchObject({ ok: true });
  expect(orders).toEqual([expect.stringMatching(/^[\w-]+\.[\w-]+$/), undefined]);
  expect(certificates.status()[0]).toMatchObject({ state: "valid" });
  // A refusal that would be the same without it is not asked for twice.
  orders.length = 0;
  stage.between.before = ({ path }) => {
    if (!path.startsWith(PATHS.newOrder)) return Promise.resolve();
    orders.push(path);
    const body = JSON.stringify(problemOf("userActionRequired", "agree", { instance: PAGE }));
    return Promise.resolve({ status: 403, headers: {}, body });
  };
  expect(await certificates.renewNow()).toMatchObject({ ok: false, problems: [{ fix: `Visit ${PAGE}.` }] });
  expect(orders).toHaveLength(1);
  await stage.stop();
});
