import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { buildBundle } from "../../build/bundle.js";
import { ROOT } from "../../build/paths.js";
import { build } from "esbuild";
import { issue } from "../../testkit/certificates.js";
import type { LoadReport } from "../../testkit/load/steadyLoad.js";
import {
  APPLICATION,
  applicationObjects,
  mediaObjects,
  PAUSE_IMAGE,
  PROXY_IMAGE,
  UPSTREAM_IMAGE,
} from "./application.js";
import { badConfig, changedConfig, crashedRuntime, deletedPods, scaled } from "./changes.js";
import { type Check, Checks, demand } from "./checks.js";
import { BALANCER_ADDRESS, Load } from "./clients.js";
import { Cluster, NODE_ADDRESS } from "./cluster.js";
import { killedProcess } from "./crash.js";
import { MEDIA_CLAIM, NAMESPACE } from "./frontEnd.js";
import { LOAD_HOST, LOAD_PATH, MEDIA_PATH } from "./site.js";
import { announcedClients } from "./proxyProtocol.js";
import { changedCertificate, clientAddresses, sharedTickets, ticketSecret, tlsSecret } from "./identity.js";
import { ImageWriter, withLibraries } from "./image.js";
import { expectedResponses } from "./liveChecks.js";
import { confined, strictlyValid } from "./objectChecks.js";
import { Scene } from "./scene.js";

/**
 * `npm run kubernetes`: the front end in a real Kubernetes, by `run.sh`, which starts this in namespaces of its own.
 * Everything that is done to it is done while clients are served.
 */

const TRANSFER_MS = 60_000;

interface Options {
  readonly folder: string;
  readonly group: string;
  /** Node of the images. */
  readonly node: string;
}

async function main(): Promise<number> {
  const { values } = parseArgs({
    options: {
      folder: { type: "string" },
      group: { type: "string" },
      node: { type: "string" },
    },
  });
  const { folder = "", group = "", node = "" } = values;
  const from = Date.now();
  const checks = new Checks();
  let scene: Scene | undefined;
  await checks.run("a cluster of one node", async () => {
    scene = await bringUp({ folder, group, node });
    return (await scene.cluster.kubectl(["version"])).match(/Server Version: (.*)/)![1]!;
  });
  if (scene !== undefined) await everything(scene, checks, folder);
  const seconds = Math.round((Date.now() - from) / 1000);
  console.log(`${checks.passed ? "passed" : "FAILED"} in ${seconds} s`);
  return checks.passed ? 0 : 1;
}

async function bringUp({ folder, group, node }: Options): Promise<Scene> {
  const programs = join(ROOT, ".cache/kubernetes/bin");
  const upstream = join(folder, "upstream.cjs");
  await build({
    entryPoints: [join(__dirname, "upstream.ts")],
    outfile: upstream,
    bundle: true,
    platform: "node",
    logLevel: "warning",
  });
  const images = new ImageWriter(join(folder, "images"));
  const base = withLibraries("/node", node);
  const archives = [
    images.write({
      name: PAUSE_IMAGE,
      layers: [{ "/pause": join(programs, "pause") }],
      entrypoint: ["/pause"],
    }),
    images.write({
      name: PROXY_IMAGE,
      layers: [base, { "/portico.mjs": (await buildBundle()).file }],
      entrypoint: ["/node", "/portico.mjs"],
    }),
    images.write({
      name: UPSTREAM_IMAGE,
      layers: [base, { "/upstream.cjs": upstream }],
      entrypoint: ["/node", "/upstream.cjs"],
    }),
  ];
  const cluster = await Cluster.start({ folder, programs, group }, archives);
  return new Scene(cluster, folder);
}

async function everything(scene: Scene, checks: Checks, folder: string): Promise<void> {
  const { cluster } = scene;
  await cluster.apply([{ apiVersion: "v1", kind: "Namespace", metadata: { name: NAMESPACE } }]);
  await checks.run("the API server accepts all manifests, strictly", () => strictlyValid(cluster));
  await checks.run("a front end of two pods", () => firstPods(scene, folder));
  await checks.run("pods are confined", () => confined(scene));
  await checks.run("upstreams see the clients' addresses", () => clientAddresses(scene));
  await checks.run("the service's expected responses", () => expectedResponses(scene, folder));
  await checks.run("sessions resume at another pod", () => sharedTickets(scene));
  await underLoad(scene, checks);
  await checks.run("a killed process cuts only its own uploads", () => killedProcess(scene, folder));
  await checks.run("a load balancer names its clients", async () => {
    await scene.apply({ announcedFrom: [BALANCER_ADDRESS] });
    await scene.settled();
    // Until then a new connection may still reach a pod that expects no header.
    await scene.onlyServing();
    return announcedClients(scene, folder);
  });
}

async function firstPods(scene: Scene, folder: string): Promise<string> {
  const media = join(folder, "media");
  mkdirSync(media, { mode: 0o755 });
  writeFileSync(join(media, MEDIA_PATH), '<svg xmlns="http://www.w3.org/2000/svg"/>\n');
  const first = await issue({ name: "first" });
  const { key } = await issue({ name: "another" });
  const { ok, warned } = await scene.cluster.apply([
    tlsSecret(first),
    tlsSecret({ ...first, key }, BROKEN_SECRET),
    ticketSecret(),
    ...mediaObjects(NAMESPACE, MEDIA_CLAIM, media),
    ...applicationObjects(NAMESPACE),
  ]);
  demand(ok, warned);
  await scene.kubectl("rollout", "status", `deployment/${APPLICATION.name}`, "--timeout=60s");
  await scene.apply();
  await scene.settled();
  return `${(await scene.serving()).length} pods are ready`;
}

const BROKEN_SECRET = "files-tls-broken";

async function underLoad(scene: Scene, checks: Checks): Promise<void> {
  const { http, https } = await scene.nodePorts();
  const began = Date.now();
  const load = await Load.start({
    address: NODE_ADDRESS,
    httpPort: http,
    httpsPort: https,
    host: LOAD_HOST,
    path: LOAD_PATH,
    transferMs: TRANSFER_MS,
    transferBytes: 6_000_000,
    clients: 1,
    pauseMs: 20,
  });
  await checks.run("a changed config rolls out", () => changedConfig(scene));
  await checks.run("a bad config stops at its first pod", () => badConfig(scene, BROKEN_SECRET));
  await checks.run("more pods, and fewer again", () => scaled(scene));
  await checks.run("pods are deleted", () => deletedPods(scene));
  await checks.run("a changed certificate is taken", async () =>
    changedCertificate(scene, await issue({ name: "second" })),
  );
  await checks.run("the node's runtime crashes", () => crashedRuntime(scene));
  const changes = checks.all.filter(({ at }) => at >= began);
  await checks.run("nothing was cut, and nothing failed", async () => judge(await load.stop(), changes));
  await checks.run("pods that were asked to end are gone once they have nothing left to do", () =>
    leftovers(scene),
  );
}

/** @param changes what was done meanwhile */
function judge({ responses, failures, transfers, slowestMs }: LoadReport, changes: readonly Check[]): string {
  const cut = transfers.filter(({ failure }) => failure !== undefined);
  const asked = Object.values(responses).reduce((sum, count) => sum + count, 0);
  const samples = [...failures, ...cut.map(({ kind, to, failure }) => ({ kind, at: to, failure: failure! }))]
    .slice(0, 20)
    .map(({ kind, at, failure }) => `${new Date(at).toISOString().slice(11, 23)} ${kind}: ${failure}`);
  demand(
    samples.length === 0,
    `${failures.length} of ${asked} requests failed, ${cut.length} of ${transfers.length} transfers were cut: ${samples.join("; ")}`,
  );
  const during = ({ at }: Check): number => transfers.filter(({ from, to }) => from < at && at < to).length;
  const least = Math.min(...changes.map(during));
  demand(least > 0, "no transfer ran when one of the changes began");
  return `${transfers.length} transfers of ${TRANSFER_MS / 1000} s over HTTP/1.1, TLS and HTTP/2, at least ${least} running as each change began; ${asked} small requests, the slowest in ${slowestMs} ms`;
}

async function leftovers(scene: Scene): Promise<string> {
  await scene.onlyServing();
  return `${(await scene.pods()).length} pods are left`;
}

main().then(
  (code) => process.exit(code),
  (error: Error) => {
    console.error(`kubernetes: ${error.stack}`);
    process.exit(2);
  },
);
