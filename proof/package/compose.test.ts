import { spawnSync } from "node:child_process";
import { publicFolder } from "../../testkit/publicFolder.js";
import { chownSync, mkdirSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { Application, FileSyncProxy, Mode } from "../../src/constructs/index.js";
import { ask } from "../applications/ask.js";
import { issue } from "../../testkit/certificates.js";
import { freePorts } from "../../testkit/ports.js";
import { newStack } from "../../testkit/stacks.js";
import { eventually } from "../../testkit/waiting.js";
import { buildImage, importNode, LIMITS, podman } from "./podman.js";
import { PODMAN_COMPOSE } from "./podmanCompose.js";

/** The files for `docker compose`, beside those of an application. */

const HOST = "photos.example.org";
const SERVER = "10.89.177.2";
const echo = `require("http").createServer((q, s) => s.end(JSON.stringify({ part: "web", method: q.method, target: q.url, fields: q.headers }))).listen(2283)`;

/** As a vendor's: services with names and a network, and no proxy. */
const vendors = (node: string): string => `
services:
  immich-server:
    image: localhost/${node}
    command: ["node", "-e", ${JSON.stringify(echo)}]
    networks: { photos: { ipv4_address: ${SERVER} } }
networks:
  photos: { ipam: { config: [{ subnet: 10.89.177.0/24 }] } }
`;

/** This machine's network may have no names of services. */
const NAMES = `services: { portico: { extra_hosts: ["immich-server:${SERVER}"] } }\n`;

test("the application is served by its names, with what Compose puts beside it", async () => {
  const folder = publicFolder("portico-compose-");
  const [node, image] = ["node", "image"].map((what) => `portico-compose-${what}-${process.pid}`) as [
    string,
    string,
  ];
  const put = (path: string, text: string): void => {
    mkdirSync(dirname(join(folder, path)), { recursive: true });
    writeFileSync(join(folder, path), text);
  };
  const compose = (...args: readonly string[]): void => {
    const files = ["vendor.yml", "portico.yml", "names.yml"].flatMap((file) => ["-f", join(folder, file)]);
    const done = spawnSync(PODMAN_COMPOSE, [`--podman-run-args=${LIMITS.join(" ")}`, ...files, ...args], {
      encoding: "utf8",
    });
    if (done.status !== 0) throw done.error ?? new Error(done.stderr + done.stdout);
  };
  importNode(node);
  buildImage(image, node);
  const [httpPort, httpsPort] = (await freePorts(2)) as [number, number];
  const { proxy } = new FileSyncProxy(newStack(), "photos", {
    mode: Mode.tls({ httpPort, httpsPort }),
    serverNames: [HOST],
    application: Application.immich(),
    upstreams: { web: { url: "http://immich-server:2283" } },
    proxy: { healthListener: { address: "127.0.0.1", port: 9180 } },
  });
  put("vendor.yml", vendors(node));
  put("names.yml", NAMES);
  for (const [path, text] of proxy.composeFiles({ image: `localhost/${image}`, networks: ["photos"] }))
    put(path, text);
  const { cert, key } = await issue({ names: [HOST] });
  put("portico/etc/portico/tls/tls.crt", cert);
  put("portico/etc/portico/tls/tls.key", key);
  for (const name of ["tls.crt", "tls.key"])
    chownSync(join(folder, "portico/etc/portico/tls", name), 65_532, 65_532);
  try {
    compose("up", "-d");
    const pinged = () => ask(httpsPort, HOST, "GET", "/api/server/ping").catch(() => undefined);
    await eventually(async () => (await pinged())?.status === 200, "for a response", { everyMs: 100 });
    expect((await pinged())!.server).toMatchObject({
      target: "/api/server/ping",
      fields: { host: HOST, "x-forwarded-proto": "https" },
    });
    const [name] = podman("ps", "--filter", "name=portico_1", "--format={{.Names}}").split("\n");
    podman("healthcheck", "run", name!);
    compose("down");
  } finally {
    spawnSync("sh", [
      "-c",
      `podman ps -aq --filter ancestor=localhost/${image} --filter ancestor=localhost/${node} | xargs -r podman rm -f`,
    ]);
    spawnSync("podman", ["rmi", "--force", image, node]);
    rmSync(folder, { recursive: true, force: true });
  }
});
