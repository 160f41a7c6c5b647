import { spawnSync } from "node:child_process";
import type { ProxyConfigInput } from "../../../src/model/index.js";
import { startFrontEnd } from "../../../testkit/frontEnd.js";
import { laboratory } from "../../../testkit/laboratory.js";
import { freePorts } from "../../../testkit/ports.js";
import { litmus, type Outcome, unfit, worse } from "./litmus.js";
import { DAV_PATH, SERVERS, startServer } from "./servers.js";
import { type TreeResult, treeThrough } from "./tree.js";
import { WrongPassword } from "./wrongPassword.js";

laboratory(
  `npm run webdav -- [OPTIONS]: WebDAV through the front end, measured against WebDAV without it

Real servers are asked by litmus directly, and behind the front end over http and https: what passes directly must pass
there. Then rclone uploads a tree, lists, renames, copies and downloads it, by checksum. The front end guards against guessing
(passwordGuard) meanwhile, and a client of the same address sends the same wrong password all the time. Needs the Debian packages litmus,
rclone and apache2-bin, and Python 3 with venv.`,
  { server: [undefined, `one of ${Object.keys(SERVERS).join(", ")} only`] },
  async (given) => {
    const names = given.server === undefined ? Object.keys(SERVERS) : [given.server];
    const missing = missingTools(names);
    if (missing.length > 0) throw new Error(missing.join("\n"));
    const wrong: string[] = [];
    for (const name of names)
      for (const way of await measure(name)) {
        console.log(describe(name, way));
        wrong.push(...problemsOf(way).map((line) => `${name}, ${way.way}: ${line}`));
      }
    return { wrong };
  },
);

interface Way {
  readonly way: "direct" | "http" | "https";
  readonly passed: number;
  readonly failed: readonly string[];
  readonly warnings: number;
  /** What passes directly and does not here. */
  readonly worse: readonly string[];
  /** Why the run without the front end is not a measure; empty for the others. */
  readonly unfit: readonly string[];
  readonly tree: TreeResult;
  /** What became of the same wrong password meanwhile. */
  readonly guarded: { readonly sent: number; readonly problems: readonly string[] };
}

const problemsOf = (way: Way): readonly string[] => [
  ...way.unfit.map((line) => `no measure: ${line}`),
  ...way.worse.map((line) => `worse than directly: ${line}`),
  ...way.tree.problems.map((line) => `tree: ${line}`),
  ...way.guarded.problems.map((line) => `of the same wrong passwords, ${line}`),
];

const litmusVersion = (): string | undefined =>
  spawnSync("litmus", ["--version"], { encoding: "utf8" }).stdout?.trim();

function missingTools(names: readonly string[]): string[] {
  return [
    ...(litmusVersion() === undefined ? ["litmus is missing: it is the Debian package litmus"] : []),
    ...[...new Set([...names, "rclone"])].flatMap((name) => {
      const recipe = SERVERS[name];
      if (recipe === undefined) return [`${name} is not a server: ${Object.keys(SERVERS).join(", ")}`];
      return recipe.version() === undefined ? [`${name} is missing: it needs ${recipe.needs}`] : [];
    }),
  ];
}

/** One server, directly and behind a front end of its own. */
async function measure(name: string): Promise<Way[]> {
  const server = await startServer(name);
  const [web, fileServer] = await freePorts(2);
  const frontEnd = await startFrontEnd({
    upstreams: { web: web!, fileServer: fileServer!, webdav: server.port },
    proxy: { trustedProxies: ["127.0.0.1"] },
    passwordGuard: {},
    change: (config) => withDestination(config, SERVERS[name]!.destination ?? "path"),
  });
  const clients: WrongPassword[] = [];
  try {
    const ways = [
      ["direct", `http://127.0.0.1:${server.port}`],
      ["http", `http://127.0.0.1:${frontEnd.plainPort}`],
      ["https", `https://127.0.0.1:${frontEnd.tlsPort}`],
    ] as const;
    let direct: readonly Outcome[] = [];
    const measured: Way[] = [];
    for (const [way, origin] of ways) {
      const old = way === "direct" ? undefined : new WrongPassword(frontEnd.plainPort);
      if (old !== undefined) clients.push(old);
      const outcomes = await litmus(origin + DAV_PATH);
      if (way === "direct") direct = outcomes;
      measured.push({
        way,
        passed: outcomes.filter(({ result }) => result === "pass").length,
        failed: outcomes
          .filter(({ result }) => result !== "pass")
          .map(({ test, message }) => `${test}: ${message ?? ""}`),
        warnings: outcomes.filter(({ result, message }) => result === "pass" && message !== undefined).length,
        worse: worse(direct, outcomes),
        unfit: way === "direct" ? unfit(outcomes, SERVERS[name]!.passes) : [],
        tree: await treeThrough(origin + DAV_PATH, server.root, SERVERS[name]!.transfers ?? 4),
        guarded: await guarded(old, SERVERS[name]!.wrongPasswords ?? HOUR),
      });
    }
    return measured;
  } finally {
    for (const client of clients) client.stop();
    await frontEnd.stop();
    await server.stop();
  }
}

/** Five a second. */
const HOUR = 18_000;

/** What became of the client with an old password. */
async function guarded(old: WrongPassword | undefined, requests: number): Promise<Way["guarded"]> {
  await old?.end(requests);
  const { statuses = {}, sent = 0 } = old ?? {};
  const others = Object.entries(statuses).filter(([status]) => status !== "401");
  return { sent, problems: others.map(([status, count]) => `${count} got ${status}`) };
}

/** What `webdavDestination` of the front end does. */
function withDestination(config: ProxyConfigInput, destination: "path" | "absolute"): ProxyConfigInput {
  const virtualServers = config.virtualServers.map((server) => ({
    ...server,
    routes: server.routes.map((route) =>
      route.name === "webdav" ? { ...route, action: { ...route.action, destination } } : route,
    ),
  }));
  return { ...config, virtualServers: virtualServers as ProxyConfigInput["virtualServers"] };
}

function describe(server: string, measured: Way): string {
  const { way, passed, failed, warnings, tree, guarded } = measured;
  const size = (tree.bytes / 2 ** 20).toFixed(0);
  return [
    `${server}, ${way}: litmus ${passed} passed, ${failed.length} not, ${warnings} warnings; tree of ${tree.files} files, ${size} MiB; ${guarded.sent} wrong passwords`,
    ...failed.map((line) => `     not passed: ${line}`),
  ].join("\n");
}
