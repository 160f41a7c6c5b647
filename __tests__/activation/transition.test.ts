import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Delivered } from "../../src/activation/delivered.js";
import type { FileState } from "../../src/activation/fileState.js";
import { type Loaded, staleOf, staleReasons } from "../../src/activation/loaded.js";
import type { GoodState } from "../../src/activation/store.js";
import { isDomainOnly, unitsInQuestion, wantedUnits } from "../../src/activation/transition.js";
import {
  type Deployment,
  type DeploymentInput,
  type FileRole,
  parseDeployment,
} from "../../src/model/index.js";

/** What a host has to go through from one deployment to the next, and what is known of it before anything is done. */

const PROXY = { service: "portico.service", socket: "portico.socket" };

type Files = readonly (readonly [path: string, role: FileRole])[];

function deployment(
  files: Files = [],
  services: Partial<DeploymentInput["services"]> = {},
  serviceUrl?: string,
): Deployment {
  const all: Files = [["/etc/portico/portico.json", "config"], ...files];
  const urls = { serviceUrl: `${serviceUrl}/sync`, fileServerRoot: `${serviceUrl}/synchttp` };
  const parsed = parseDeployment({
    version: 1,
    config: "/etc/portico/portico.json",
    files: all
      .map(([path, role]) => ({ path, role, mode: "0644" as const, sha256: hash(path) }))
      .sort((a, b) => (a.path < b.path ? -1 : 1)),
    services: { proxy: PROXY, ...services },
    ...(serviceUrl === undefined
      ? {}
      : {
          settings: {
            values: {
              ...urls,
              serveStatic: false,
              mediaUrl: "/m/",
              siteRoot: "/sync/",
              loginUrl: "/l/",
              compressUrl: "/m/",
              staticUrl: "/m/",
              enableSettingsViaWeb: false,
              csrfTrustedOrigins: [serviceUrl],
              fileServerHost: "127.0.0.1",
              fileServerPort: 8082,
            },
            files: { networkDaemon: "/a", webApplication: "/b", fileServer: "/c" },
          },
        }),
  });
  if (!parsed.ok) throw new Error(JSON.stringify(parsed.problems));
  return parsed.value;
}

/** Some hash for each path. */
const hash = (path: string): string => Buffer.from(path).toString("hex").padEnd(64, "0").slice(-64);

const UNIT = "/etc/systemd/system";
const good = (last: Deployment, before: GoodState["before"] = {}): GoodState =>
  ({ deployment: last, before }) as GoodState;

test("the units in question: those that are named, and those of files, except templates", () => {
  const files: Files = [
    [`${UNIT}/t.timer`, "unit"],
    [`${UNIT}/u@.service`, "unit"],
    [`${UNIT}/v.service.d/a.conf`, "unit"],
    [`${UNIT}/w.service`, "other"],
  ];
  const daemons = [{ unit: "web.service" }, { unit: "f.service" }];
  expect(unitsInQuestion(deployment(files, { daemons }), undefined).sort()).toEqual([
    "f.service",
    "portico.service",
    "portico.socket",
    "t.timer",
    "v.service",
    "web.service",
  ]);
  expect(unitsInQuestion(undefined, deployment([], { firewall: "fw.service" }))).toContain("fw.service");
});

describe("units as a deployment wants them", () => {
  let folder: string;
  beforeEach(() => (folder = mkdtempSync(join(tmpdir(), "portico-units-"))));
  afterEach(() => rmSync(folder, { recursive: true }));

  async function wanted(
    texts: Readonly<Record<string, string>>,
    services: Partial<DeploymentInput["services"]>,
    last?: GoodState,
  ): Promise<Record<string, unknown>> {
    const files = Object.keys(texts).map((path): Files[number] => [path, "unit"]);
    const contents = new Map(
      Object.entries(texts).map(([path, text], i) => {
        const file = join(folder, String(i));
        writeFileSync(file, text);
        return [hash(path), file];
      }),
    );
    const delivered = { deployment: deployment(files, services), contents } as unknown as Delivered;
    return Object.fromEntries(await wantedUnits(delivered, last));
  }

  const ON = { active: true };
  const AT_BOOT = { active: true, enabled: true };
  const OFF = { active: false, enabled: false };

  test("those that are named run, those that can be installed start at boot, others stay as they are", async () => {
    const texts = {
      [`${UNIT}/portico.service`]: "[Service]\n[Install]\n",
      [`${UNIT}/t.timer`]: "[Timer]\n[Install]\nWantedBy=timers.target\n",
      [`${UNIT}/u.service`]: "[Service]\n# has no [Install]\n",
      [`${UNIT}/v.service.d/a.conf`]: "[Install]\n",
      [`${UNIT}/web.service`]: "[Service]\n",
      [`${UNIT}/w@.service`]: "[Install]\n",
    };
    expect(await wanted(texts, { daemons: [{ unit: "web.service" }] })).toEqual({
      "portico.service": AT_BOOT,
      "portico.socket": ON,
      "t.timer": AT_BOOT,
      "web.service": ON,
    });
  });

  test("units that deployments brought go with them; those that were there before stay", async () => {
    const file: FileState = { kind: "file", sha256: hash("x"), mode: "0644", uid: 0, gid: 0 };
    const last = good(
      deployment([
        [`${UNIT}/ours.service`, "unit"],
        [`${UNIT}/stays.service`, "unit"],
        [`${UNIT}/theirs.service`, "unit"],
        [`${UNIT}/unknown.service`, "unit"],
        [`${UNIT}/unseen.service`, "unit"],
      ]),
      {
        [`${UNIT}/ours.service`]: { kind: "absent" },
        [`${UNIT}/stays.service`]: { kind: "absent" },
        [`${UNIT}/theirs.service`]: file,
        [`${UNIT}/unknown.service`]: "unknown",
      },
    );
    expect(await wanted({ [`${UNIT}/stays.service`]: "[Service]\n" }, {}, last)).toEqual({
      "ours.service": OFF,
      "unknown.service": OFF,
      "portico.service": ON,
      "portico.socket": ON,
    });
  });
});

describe("whether only the host in the URLs changes", () => {
  const at = (url: string): Deployment => deployment([], {}, url);
  test.each<[from: string | undefined, to: string | undefined, only: boolean, roles?: FileRole[]]>([
    ["https://a.example", "https://b.example", true],
    ["https://a.example", "https://a.example", false],
    ["https://a.example", "http://a.example", false],
    ["https://a.example", "http://b.example", false],
    ["https://a.example:8443", "https://b.example:8443", true],
    ["https://a.example", "https://b.example:8443", false],
    ["https://192.0.2.1", "https://[2001:db8::1]", true],
    ["https://[2001:db8::1]:81", "https://[2001:db8::2]:81", true],
    [undefined, "https://b.example", false],
    ["https://a.example", undefined, false],
    [undefined, undefined, false],
    ["https://a.example", "https://b.example", true, ["config", "tls", "page", "settings", "other"]],
    ...(["unit", "firewall", "network", "runtime", "node"] as const).map(
      (role): [string, string, boolean, FileRole[]] => [
        "https://a.example",
        "https://b.example",
        false,
        ["config", role],
      ],
    ),
  ])("from %s to %s: %s", (from, to, only, roles = []) => {
    const [then, now] = [from, to].map((url) => (url === undefined ? deployment() : at(url))) as [
      Deployment,
      Deployment,
    ];
    expect(
      isDomainOnly(
        now,
        good(then),
        roles.map((role) => ({ role })),
      ),
    ).toBe(only);
    expect(isDomainOnly(now, undefined, [])).toBe(false);
  });
});

describe("what is loaded differs from what is installed", () => {
  const same = { runtime: "r", config: "c", tls: "t" };
  const loaded = (more: Partial<Loaded> = {}): Loaded => ({
    rules: new Map(),
    units: [],
    proxy: { running: same, installed: same },
    lostLogDirectories: [],
    ...more,
  });
  const running = (more: Partial<typeof same>): Partial<Loaded> => ({
    proxy: { running: { ...same, ...more }, installed: same },
  });
  const rules = (state: "missing" | "different" | "loaded"): Partial<Loaded> => ({
    rules: new Map([["/etc/fw.nft", state === "loaded" ? { state } : { state, tables: ["inet fw"] }]]),
  });
  const unit = (name: string, outdated: boolean) =>
    ({ unit: name, outdated }) as NonNullable<Loaded["units"]>[number];
  const NOTHING = { units: [], manager: false, proxy: "nothing" };

  test.each<[what: string, seen: Partial<Loaded>, stale: object, reasons: string[]]>([
    ["nothing", {}, NOTHING, []],
    ["nothing can be seen", { units: undefined, proxy: undefined }, NOTHING, []],
    ["rules as they should be", rules("loaded"), NOTHING, []],
    [
      "rules that nobody knows",
      { rules: new Map([["/etc/fw.nft", { state: "unknown", why: "" }]]) },
      NOTHING,
      [],
    ],
    [
      "rules that are missing",
      rules("missing"),
      { ...NOTHING, units: ["fw.service"] },
      ["/etc/fw.nft: the table inet fw is not loaded"],
    ],
    [
      "other rules",
      rules("different"),
      { ...NOTHING, units: ["fw.service"] },
      ["/etc/fw.nft: the table inet fw is loaded with other rules"],
    ],
    [
      "units that changed",
      { units: [unit("a.service", true), unit("b.service", false)] },
      { units: ["a.service"], manager: true, proxy: "nothing" },
      ["a.service: changed since systemd read it"],
    ],
    [
      "a log directory",
      { lostLogDirectories: ["/var/log/portico"] },
      { ...NOTHING, units: ["portico.service"] },
      ["/var/log/portico: was removed, and the proxy cannot create it again"],
    ],
    [
      "the runtime",
      running({ runtime: "x" }),
      { ...NOTHING, proxy: "upgrade" },
      ["runtime: is not the one that runs"],
    ],
    [
      "the config",
      running({ config: "x" }),
      { ...NOTHING, proxy: "reload" },
      ["config: was changed since it was loaded"],
    ],
    [
      "a certificate",
      running({ tls: "x" }),
      { ...NOTHING, proxy: "reload" },
      ["certificate: was changed since it was loaded"],
    ],
    [
      "runtime and config",
      running({ runtime: "x", config: "x" }),
      { ...NOTHING, proxy: "upgrade" },
      ["runtime: is not the one that runs", "config: was changed since it was loaded"],
    ],
  ])("%s", (_what, seen, stale, reasons) => {
    const { units, ...rest } = staleOf(loaded(seen), deployment([], { firewall: "fw.service" }));
    expect({ ...rest, units: [...units] }).toEqual(stale);
    expect(staleReasons(loaded(seen))).toEqual(reasons);
    expect([...staleOf(loaded(seen), deployment()).units]).not.toContain("fw.service");
  });
});
