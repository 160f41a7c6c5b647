import { spawnSync } from "node:child_process";
import { chownSync, renameSync, symlinkSync, unlinkSync } from "node:fs";
import { join } from "node:path";
import {
  Action,
  Application,
  ContainerProxy,
  ContainerFrontEnd,
  Mode,
  TlsMaterial,
} from "../../src/constructs/index.js";
import { ask } from "../applications/ask.js";
import { issue } from "../../testkit/certificates.js";
import { freePorts } from "../../testkit/ports.js";
import { newStack } from "../../testkit/stacks.js";
import { eventually } from "../../testkit/waiting.js";
import { Composed } from "./composed.js";
import { podman } from "./podman.js";

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

const TLS = "portico/etc/portico/tls";

/** Others may read the key, which is as careless as it can be. @returns the key */
async function putCertificate(composed: Composed): Promise<string> {
  const { cert, key } = await issue({ names: [HOST] });
  for (const [name, text] of Object.entries({ "tls.crt": cert, "tls.key": key })) {
    composed.put(`${TLS}/${name}`, text);
    chownSync(composed.path(TLS, name), 65_532, 65_532);
  }
  return key;
}

test("the application is served by its names, with what Compose puts beside it", async () => {
  const composed = new Composed(["vendor.yml", "portico.yml", "names.yml"]);
  try {
    composed.buildImages();
    const [httpPort, httpsPort] = (await freePorts(2)) as [number, number];
    const { proxy } = new ContainerFrontEnd(newStack(), "photos", {
      mode: Mode.tls({ httpPort, httpsPort }),
      serverNames: [HOST],
      application: Application.immich(),
      upstreams: { web: { url: "http://immich-server:2283" } },
      proxy: { healthListener: { address: "127.0.0.1", port: 9180 } },
    });
    composed.put("vendor.yml", vendors(composed.nodeImage));
    composed.put("names.yml", NAMES);
    for (const file of proxy.composeFiles({ image: composed.porticoImage, networks: ["photos"] }))
      composed.put(...file);
    await putCertificate(composed);
    composed.compose("up", "-d");
    const pinged = () => ask(httpsPort, HOST, "GET", "/api/server/ping").catch(() => undefined);
    await eventually(async () => (await pinged())?.status === 200, "for a response", { everyMs: 100 });
    expect((await pinged())!.server).toMatchObject({
      target: "/api/server/ping",
      fields: { host: HOST, "x-forwarded-proto": "https" },
    });
    const [name] = podman(
      "ps",
      // Other tests have containers of this name.
      `--filter=ancestor=${composed.porticoImage}`,
      "--format={{.Names}}",
    ).split("\n");
    podman("healthcheck", "run", name!);
  } finally {
    composed.end();
  }
});

/**
 * The user of an application owns what the proxy serves. What this user puts there, or in the place of it, sends none of
 * the container's secrets: the container has one user, so only the proxy's rule keeps them.
 */
describe("a link that the application's user makes", () => {
  const APP = 42_424;
  const SYMLINKS = ["inside", "never", "anywhere"] as const;
  /** What is linked, and how the secret is asked for below it. */
  const TARGETS: readonly (readonly [to: string, below: string])[] = [
    ["/etc/portico/tls", "tls.key"],
    ["/etc/portico", "tls/tls.key"],
    ["../../../etc/portico/tls", "tls.key"],
    ["/proc/self/root/etc/portico/tls", "tls.key"],
    ["/", "etc/portico/tls/tls.key"],
    ["/proc/self", "environ"],
    ["/proc/1", "environ"],
  ];
  let composed: Composed;
  let port: number;
  let key: string;

  beforeAll(async () => {
    composed = new Composed(["portico.yml"]);
    composed.buildImages();
    [port] = (await freePorts(1)) as [number];
    const proxy = new ContainerProxy(newStack(), "media");
    const listener = proxy.addListener("https", {
      port: 8443,
      publishedPort: port,
      tls: { material: TlsMaterial.fromSecret() },
    });
    const site = proxy.addVirtualServer("site", { serverNames: ["_"], listeners: [listener], default: true });
    for (const symlinks of SYMLINKS)
      site.addRoute(symlinks, {
        path: `/${symlinks}`,
        action: Action.staticFiles(`/srv/data/${symlinks}`, { symlinks }),
      });
    const options = { image: composed.porticoImage, volumes: ["./data:/srv/data:ro"] };
    for (const file of proxy.composeFiles(options)) composed.put(...file);
    for (const symlinks of SYMLINKS) composed.put(`data/${symlinks}/file`, "harmless");
    spawnSync("chown", ["-R", `${APP}:${APP}`, composed.path("data")]);
    key = await putCertificate(composed);
    composed.compose("up", "-d");
    const status = async () => (await got("/inside/file"))?.status;
    await eventually(async () => (await status()) === 200, "for a response", { everyMs: 100 });
  });

  afterAll(() => composed?.end());

  const got = (target: string) => ask(port, HOST, "GET", target).catch(() => undefined);

  test.each(SYMLINKS.flatMap((symlinks) => TARGETS.map((target) => [symlinks, ...target] as const)))(
    "symlinks %s: to %s",
    async (symlinks, to, below) => {
      const media = composed.path("data", symlinks);
      const within = join(media, "within");
      const link = (path: string): void => {
        symlinkSync(to, path);
        spawnSync("chown", ["-h", `${APP}:${APP}`, path]);
      };
      const expectNoSecret = async (target: string): Promise<void> => {
        const response = await got(target);
        expect(`${target}: ${response?.status}`).toMatch(/: (403|404)$/);
        expect(JSON.stringify(response)).not.toContain(key.slice(40, 90));
      };
      link(within);
      try {
        await expectNoSecret(`/${symlinks}/within/${below}`);
      } finally {
        unlinkSync(within);
      }
      renameSync(media, `${media}.moved`);
      link(media);
      try {
        await expectNoSecret(`/${symlinks}/${below}`);
      } finally {
        unlinkSync(media);
        renameSync(`${media}.moved`, media);
      }
      expect((await got(`/${symlinks}/file`))?.status).toBe(200);
    },
  );
});
