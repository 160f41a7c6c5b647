import { Socket } from "node:dgram";
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { freePort, freePorts } from "../../testkit/ports.js";
import { siteConfig, siteExpect } from "../../testkit/siteConfig.js";
import type { Evidence } from "../../src/host/diagnosis/evidence.js";
import { type DiagnosisOptions, gather } from "../../src/host/diagnosis/gather.js";
import { ownAddresses } from "../../src/host/diagnosis/system/hostFacts.js";
import type { DeploymentInput } from "../../src/model/index.js";
import { type ControlOutcome, ControlServer } from "../../src/runtime/supervisor/control/control.js";
import { wantedFiles } from "../applicationSettings/oracle.js";
import { deploymentOf } from "../../testkit/deployment.js";
import { HEALTHY, type Subject, subjectOf } from "./site.js";

/** Which documents a diagnosis believes, and what it asks the running proxy. */

let folder: string;
let options: DiagnosisOptions;
const at = (name: string): string => join(folder, name);
beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), "portico-gather-"));
  options = {
    deploymentFile: at("deployment.json"),
    configFile: at("portico.json"),
    place: "host",
    publicAddresses: [],
    insecure: true,
    timeoutMs: 1_000,
  };
  const tls = { acme: { authority: "ca", names: ["example.org"] } };
  const config = {
    version: 1,
    certificateAuthorities: [{ name: "ca", agreeToTerms: true }],
    listeners: [{ name: "https", address: "127.0.0.1", port: await freePort(), protocol: "https", tls }],
    virtualServers: [{ name: "site", serverNames: ["_"], listeners: ["https"], default: true, routes: [] }],
  };
  writeFileSync(at("portico.json"), JSON.stringify(config));
});
afterEach(() => rmSync(folder, { recursive: true }));

test("a document that cannot be read gives way to the activated one; without that, nothing is gathered", async () => {
  const activated = {
    drift: HEALTHY.drift!,
    deployment: deploymentOf({ name: "activated" }),
  };
  const deployed = async (more: Partial<DiagnosisOptions>): Promise<unknown> => {
    const gathered = await gather({ ...options, ...more });
    return gathered.ok
      ? gathered.value.deployment?.name
      : gathered.problems.map(({ code, path }) => [code, path]);
  };
  expect(await deployed({})).toBeUndefined();
  expect(await deployed({ activated })).toBe("activated");
  const here = deploymentOf({ name: "here" });
  writeFileSync(at("deployment.json"), JSON.stringify(here));
  expect(await deployed({ activated })).toBe("here");
  writeFileSync(at("deployment.json"), JSON.stringify({ ...here, version: 2 }));
  expect(await deployed({ activated })).toBe("activated");
  expect(await deployed({})).toEqual([[expect.any(String), `${at("deployment.json")}: version`]]);
  writeFileSync(at("deployment.json"), "{");
  expect(await deployed({ activated: { drift: HEALTHY.drift! } })).toEqual([
    [expect.any(String), at("deployment.json")],
  ]);
  rmSync(at("deployment.json"));
  writeFileSync(at("portico.json"), "{");
  expect(await deployed({ activated })).toEqual([["config.not-json", at("portico.json")]]);
});

test("on the host systemd is asked about the units of a deployment", async () => {
  const path = process.env["PATH"];
  writeFileSync(at("systemctl"), "#!/bin/sh\nprintf 'LoadState=loaded\\nActiveState=active\\n\\n'\n", {
    mode: 0o755,
  });
  writeFileSync(at("deployment.json"), JSON.stringify(deploymentOf({})));
  process.env["PATH"] = `${folder}:${path}`;
  try {
    const gathered = await gather(options);
    expect(gathered).toMatchObject({ ok: true, value: { units: { proxy: { state: "active" } } } });
  } finally {
    process.env["PATH"] = path;
  }
  const unasked = await gather(options);
  expect(unasked.ok && unasked.value.units).toBeUndefined();
});

test("the config is the one that is named, or the deployment's, or the one in its usual place", async () => {
  const { configFile: _, ...unnamed } = options;
  const path = at("portico.json");
  const of = async (given: DiagnosisOptions): Promise<unknown> => {
    const gathered = await gather(given);
    return gathered.ok
      ? gathered.value.config.listeners[0]!.name
      : gathered.problems.map((problem) => [problem.code, problem.path]);
  };
  expect(await of(unnamed)).toEqual([["files.unreadable", "/etc/portico/portico.json"]]);
  const files = [{ path, mode: "0644" as const, sha256: "0".repeat(64), role: "config" as const }];
  writeFileSync(at("deployment.json"), JSON.stringify(deploymentOf({ config: path, files })));
  expect(await of(unnamed)).toBe("https");
  rmSync(at("deployment.json"));
  mkdirSync(at("deployment.json"));
  expect(await of(options)).toEqual([["files.not-a-file", at("deployment.json")]]);
});

describe("of a front end", () => {
  let ports: { http: number; https: number; published: number };
  beforeEach(async () => {
    const [http, https, published] = (await freePorts(3)) as [number, number, number];
    ports = { http, https, published };
  });

  /** What was seen of a front end where nothing listens. */
  async function seen(
    more: Partial<DiagnosisOptions>,
    deployed?: Partial<DeploymentInput>,
    host = "127.0.0.1",
  ): Promise<Evidence> {
    const { listeners, ...rest } = siteConfig({ mode: "tls", host, mediaDirectory: at("media") });
    const moved = listeners.map((one) =>
      one.protocol === "http"
        ? { ...one, port: ports.http }
        : { ...one, port: ports.https, publishedPort: ports.published },
    );
    writeFileSync(at("portico.json"), JSON.stringify({ ...rest, listeners: moved }));
    const rows = siteExpect({ mode: "tls", host });
    if (deployed !== undefined || !existsSync(at("deployment.json")))
      writeFileSync(at("deployment.json"), JSON.stringify(deploymentOf({ expect: rows, ...deployed })));
    const gathered = await gather({ ...options, timeoutMs: 300, ...more });
    if (!gathered.ok) throw new Error(JSON.stringify(gathered.problems));
    return gathered.value;
  }
  const row = ({ responses }: Evidence, subject: Subject) =>
    responses.find((one) => subjectOf(one.row) === subject)!.row;
  const servedAs = (host: string): Partial<DeploymentInput> => ({
    expect: siteExpect({ mode: "tls", host }),
    settings: {
      files: wantedFiles(
        { networkDaemon: at("a"), webApplication: at("b"), fileServer: at("c") },
        { origins: [{ scheme: "https", host, port: 444 }] },
      ),
    },
  });

  test.each<
    [
      what: string,
      more: Partial<DiagnosisOptions>,
      host: string | undefined,
      asked: [host: string, address: string, port: "https" | "published", origin: string],
    ]
  >([
    ["on the host", {}, undefined, ["127.0.0.1", "127.0.0.1", "https", "https://127.0.0.1"]],
    ["by a name", { host: "localhost" }, undefined, ["localhost", "127.0.0.1", "https", "https://localhost"]],
    ["by the name of the rows", {}, "localhost", ["localhost", "127.0.0.1", "https", "https://localhost"]],
    ["by the name of the rows with IPv6", {}, "::1", ["[::1]", "127.0.0.1", "https", "https://[::1]"]],
    ["at an own address", { connect: "::1" }, undefined, ["127.0.0.1", "::1", "https", "https://127.0.0.1"]],
    [
      "at another address",
      { connect: "192.0.2.77" },
      undefined,
      ["127.0.0.1", "192.0.2.77", "published", "https://127.0.0.1"],
    ],
    [
      "from elsewhere",
      { place: "elsewhere" },
      undefined,
      ["127.0.0.1", "127.0.0.1", "published", "https://127.0.0.1"],
    ],
    [
      "from elsewhere by the name of the rows",
      { place: "elsewhere" },
      "localhost",
      ["localhost", "localhost", "published", "https://localhost"],
    ],
    [
      "from elsewhere at another place",
      { place: "elsewhere", connect: "::1" },
      "localhost",
      ["localhost", "::1", "published", "https://localhost"],
    ],
  ])("where requests go: %s", async (_what, more, service, [host, address, port, origin]) => {
    const found = await seen(more, service === undefined ? undefined : servedAs(service));
    const { request } = row(found, "web");
    expect([request.host, request.address, request.port]).toEqual([
      `${host}:${ports.published}`,
      address,
      ports[port],
    ]);
    expect(row(found, "redirect").expected[1]!.message).toBe(`Location: ${origin}/sync/`);
  });

  test("what a deployment says of its media, its addresses and its daemons' ports", async () => {
    const deployed = { probe: { imagePath: "x/y.png" }, network: { loopbackPorts: [ports.http + 1] } };
    const here = await seen({ host: "198.41.0.4" }, deployed as never);
    expect(row(here, "media").request.path).toBe("/syncmedia/x/y.png");
    // A public address that is asked for by itself is not one that a name leads to.
    expect(here).toMatchObject({ publicAddresses: [], place: "host", configProblems: expect.any(Array) });
    expect(here.configProblems!.map(({ code }) => code)).toContain("files.unreadable");
    expect(here.openPorts).toBeUndefined();
    const there = await seen({ place: "elsewhere", connect: "localhost", imagePath: "z.png" });
    expect(row(there, "media").request.path).toBe("/syncmedia/z.png");
    expect(there.openPorts).toEqual(
      new Map([ports.http, ports.published, ports.http + 1].map((port) => [port, false])),
    );
    const nowhere = await seen({ place: "elsewhere", connect: "none.invalid" });
    expect(nowhere.unresolved).toBe("none.invalid");
    expect(nowhere.openPorts).toBeUndefined();
    expect(there.unresolved).toBeUndefined();
    const translated = await seen(
      { publicAddresses: ["192.0.2.77"] },
      { network: { addresses: ["127.0.0.1"] } },
    );
    expect(translated.publicAddresses).toEqual([
      { address: "192.0.2.77", own: false, outcome: { failure: expect.anything() } },
    ]);
  });

  test("only an address that the deployment names is one that a router may translate, and only to this host", async () => {
    const kernel = jest.spyOn(Socket.prototype, "address");
    kernel.mockReturnValue({ address: "10.0.0.5", family: "IPv4", port: 9 });
    const publicAddress = "198.41.0.4";
    const of = async (more: Partial<DiagnosisOptions>, addresses: string[]) =>
      (
        await seen({ publicAddresses: [publicAddress], ...more }, { network: { addresses } })
      ).publicAddresses!.map(({ address, translatedTo }) => [address, translatedTo]);
    try {
      expect(await of({}, [publicAddress])).toEqual([[publicAddress, "10.0.0.5"]]);
      expect(await of({}, ["127.0.0.1"])).toEqual([[publicAddress, undefined]]);
      const elsewhere = { place: "elsewhere", connect: "127.0.0.1" } as const;
      expect(await of(elsewhere, [publicAddress])).toEqual([[publicAddress, undefined]]);
    } finally {
      kernel.mockRestore();
    }
  });

  test("an address of the host's own is not tried because a deployment names it, but because it is given", async () => {
    const own = [...ownAddresses()].filter((address) => !/^(?:127\.|::1$|fe80:)/.test(address));
    expect((await seen({}, { network: { addresses: own } })).publicAddresses).toEqual([]);
    const [given] = own;
    if (given === undefined) return;
    // An own address is asked by the port that the listener has.
    const others = await seen({ publicAddresses: [given], timeoutMs: 10_000 });
    expect(others.publicAddresses).toEqual([
      {
        address: given,
        own: true,
        outcome: { failure: { code: "ECONNREFUSED", message: expect.stringMatching(`:${ports.http}$`) } },
      },
    ]);
  });

  test("an image of the media is looked for only on the host", async () => {
    mkdirSync(at("media"));
    writeFileSync(at("media/a.png"), "x");
    expect(row(await seen({}), "media").request.path).toBe("/syncmedia/a.png");
    expect(row(await seen({ place: "elsewhere" }), "media").notProbed).toBeDefined();
  });

  test("without a name only its certificates are asked for from elsewhere", async () => {
    const gathered = await gather({ ...options, place: "elsewhere", publicAddresses: ["192.0.2.77"] });
    expect(gathered).toMatchObject({
      ok: true,
      value: { place: "elsewhere", responses: [{ row: { certificate: true } }] },
    });
    expect(gathered.ok && gathered.value).not.toHaveProperty("openPorts");
    expect(gathered.ok && gathered.value.publicAddresses).toEqual([
      {
        address: "192.0.2.77",
        own: false,
        outcome: { failure: expect.anything() },
      },
    ]);
  });

  test("settings that the application's database stores", async () => {
    const path = process.env["PATH"];
    process.env["PATH"] = `${folder}:${path}`;
    const client = (script: string): void =>
      writeFileSync(at("mariadb"), `#!/bin/sh\n${script}\n`, { mode: 0o755 });
    const hex = (text: string): string => Buffer.from(text).toString("hex");
    const deployed = {
      ...servedAs("localhost"),
      database: { host: "127.0.0.1", port: 3306, name: "sync", user: "reader" },
    };
    const settings = async (more: Partial<DiagnosisOptions> = {}) =>
      (await seen({ databasePassword: "pw", ...more }, deployed)).settings!;
    try {
      client(
        `printf 'SERVICE_URL\\t${hex("https://localhost:444/sync/")}\\nFILE_SERVER_ROOT\\t${hex("/x y")}\\n'`,
      );
      expect(await settings()).toMatchObject({
        deviations: [
          {
            item: "FILE_SERVER_ROOT",
            wanted: "https://localhost:444/synchttp",
            found: "a value that cannot be read",
            where: "stored in the application's database, which has priority",
          },
        ],
        database: "The database stores no other values.",
      });
      client(`printf 'FILE_SERVER_ROOT\\t${hex("/x")}\\n'`);
      expect((await settings()).deviations).toMatchObject([{ found: "/x" }]);
      client(`echo "$1" >&2; exit 1`);
      expect((await settings({ databasePassword: undefined, databaseOptionFile: "/o" })).database).toBe(
        "The database was not queried: mariadb says: --defaults-extra-file=/o.",
      );
      expect((await seen({}, servedAs("localhost"))).settings!.database).toBe(
        "The database was not queried: the deployment does not name one.",
      );
    } finally {
      process.env["PATH"] = path;
    }
  });
});

test("the running proxy is asked for its certificates, where there is one", async () => {
  let outcome: ControlOutcome = { ok: false, problems: [] };
  const asked: { command: string }[] = [];
  const control = await ControlServer.open(at("control.sock"), (request) => {
    asked.push(request);
    return Promise.resolve(outcome);
  });
  const seen = async (more: Partial<DiagnosisOptions>): Promise<unknown> => {
    const gathered = await gather({ ...options, ...more });
    return gathered.ok ? gathered.value.certificates : gathered;
  };
  try {
    expect(await seen({})).toBeUndefined();
    expect(asked).toEqual([]);
    expect(await seen({ control: at("control.sock") })).toBeUndefined();
    outcome = { ok: true, value: { message: "", warnings: [], certificates: [] } };
    expect(await seen({ control: at("control.sock") })).toEqual([]);
    const commands = asked.map(({ command }) => command).toSorted();
    expect(commands).toEqual(["certificates", "certificates", "pauses", "pauses"]);
    const lastError = { code: "caa", message: "no", fix: "curl example.org | sh", at: 0 };
    const listed = {
      names: ["example.org"],
      from: "ca",
      listeners: [],
      source: "temporary",
      issuer: "",
      notBefore: 0,
      notAfter: 0,
      lastError,
    };
    outcome = { ok: true, value: { message: "", warnings: [], certificates: [listed as never] } };
    expect(await seen({ control: at("control.sock") })).toMatchObject([
      {
        lastError: {
          ...lastError,
          fix: expect.stringMatching(/^Add the authority .* to the CAA records of/),
        },
      },
    ]);
    asked.pop();
    // Where none is by ACME there is nothing to ask.
    writeFileSync(at("portico.json"), JSON.stringify(siteConfig({ mode: "plain" })));
    expect(await seen({ control: at("control.sock") })).toBeUndefined();
    expect(asked.filter(({ command }) => command === "certificates")).toHaveLength(2);
  } finally {
    control.close();
  }
});
