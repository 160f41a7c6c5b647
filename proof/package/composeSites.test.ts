import { createHash, randomBytes } from "node:crypto";
import { get } from "node:https";
import type { TLSSocket } from "node:tls";
import { Application, ContainerFrontEnd, Mode, TlsMaterial } from "../../src/constructs/index.js";
import { newStack } from "../../testkit/stacks.js";
import { eventually } from "../../testkit/waiting.js";
import { TestCa } from "../acme/ca.js";
import { Composed } from "./composed.js";

/** Three sites of different kinds in Compose, each with its own certificate, which the state volume keeps. */

const NET = "10.89.178";
const [MACHINE, WIKI, SYNC] = [`${NET}.1`, `${NET}.2`, `${NET}.3`];
const ROOTS = "/srv/ca/roots.pem";
const BYTES = { wiki: randomBytes(4_000_000), pages: randomBytes(4_000_000) };
const wiki = `require("http").createServer((q, s) => require("fs").createReadStream("/srv/wiki/bytes").pipe(s)).listen(3000)`;
/** Its web application leads to the log-in, as each server of it says which it is. */
const sync = `for (const port of [8000, 8080, 8082]) require("http").createServer((q, s) => s.writeHead(port === 8000 ? 302 : 207, { location: "https://files.example.net/sync/accounts/login/" }).end(port + q.url)).listen(port)`;

const application = (node: string): string => `
services:
  wiki:
    image: localhost/${node}
    command: ["node", "-e", ${JSON.stringify(wiki)}]
    volumes: ["./wiki:/srv/wiki:ro"]
    networks: { sites: { ipv4_address: ${WIKI} } }
  sync:
    image: localhost/${node}
    command: ["node", "-e", ${JSON.stringify(sync)}]
    networks: { sites: { ipv4_address: ${SYNC} } }
networks:
  sites: { ipam: { config: [{ subnet: ${NET}.0/24, gateway: ${MACHINE} }] } }
`;
/** This machine's network may have no names of services. */
const NAMES = `services: { portico: { extra_hosts: ["wiki:${WIKI}", "sync:${SYNC}"] } }\n`;

type SiteName = "wiki" | "pages" | "files";
const nameOf = (site: SiteName): string => `${site}.example.net`;

let ca: TestCa;
let composed: Composed;

beforeAll(async () => {
  ca = await TestCa.start({ address: MACHINE });
  composed = new Composed(["application.yml", "portico.yml", "names.yml"]);
  composed.buildImages();
  composed.put("application.yml", application(composed.nodeImage));
  composed.put("names.yml", NAMES);
  composed.put("roots.pem", ca.certificate);
  composed.put("wiki/bytes", BYTES.wiki);
  composed.put("pages/bytes", BYTES.pages);
  composed.put("media/icon.svg", "<svg/>\n");
  putProxy(["wiki", "pages", "files"]);
  composed.compose("up", "-d");
});

afterAll(async () => {
  composed?.end();
  await ca?.stop();
});

test("each has its own application and its own certificate", async () => {
  for (const site of ["wiki", "pages", "files"] as const) {
    await eventually(async () => (await seen(site, "/"))?.issuer === "Pebble", `for ${site}'s certificate`, {
      everyMs: 100,
    });
    expect((await seen(site, "/"))!.names).toBe(`DNS:${nameOf(site)}`);
  }
  for (const site of ["wiki", "pages"] as const)
    expect((await seen(site, "/bytes"))!.hash).toBe(hashOf(BYTES[site]));
  expect(await seen("files", "/sync/")).toMatchObject({
    status: 302,
    hash: hashOf(Buffer.from("8000/sync/")),
  });
  expect(await seen("files", "/syncmedia/icon.svg")).toMatchObject({ status: 200 });
  expect(await seen("files", "/bytes")).toMatchObject({ status: 404 });
});

test("one is removed: the others keep their certificates in the new container, and its name gets 404", async () => {
  const kept = ["pages", "files"] as const;
  const serials = async (): Promise<unknown[]> =>
    Promise.all(kept.map(async (site) => (await seen(site, "/"))?.serial));
  const before = await serials();
  putProxy(kept);
  composed.compose("up", "-d");
  await eventually(async () => (await seen("wiki", "/bytes"))?.status === 404, "for 404", { everyMs: 100 });
  expect(await serials()).toEqual(before);
  expect((await seen("pages", "/bytes"))!.hash).toBe(hashOf(BYTES.pages));
});

function putProxy(sites: readonly SiteName[]): void {
  const front = new ContainerFrontEnd(newStack(), "home", {
    mode: Mode.tls({
      httpPort: ca.httpPort,
      httpsPort: ca.tlsPort,
      material: TlsMaterial.acme({
        email: "admin@example.org",
        agreeToTerms: true,
        directory: ca.directory,
        roots: ROOTS,
      }),
    }),
  });
  if (sites.includes("wiki"))
    front.addSite("wiki", {
      serverNames: [nameOf("wiki")],
      application: Application.server("http://wiki:3000"),
    });
  front.addSite("pages", {
    serverNames: [nameOf("pages")],
    application: Application.staticFiles("/srv/pages"),
  });
  front.addSite("files", {
    serverNames: [nameOf("files")],
    application: Application.fileSync({ mediaDirectory: "/srv/media" }),
    upstreams: {
      web: { url: "http://sync:8000" },
      webdav: { url: "http://sync:8080" },
      fileServer: { url: "http://sync:8082" },
    },
  });
  const volumes = ["./roots.pem:/srv/ca/roots.pem:ro", "./pages:/srv/pages:ro", "./media:/srv/media:ro"];
  for (const file of front.proxy.composeFiles({ image: composed.porticoImage, networks: ["sites"], volumes }))
    composed.put(...file);
}

const hashOf = (bytes: Buffer): string => createHash("sha256").update(bytes).digest("hex");

interface Seen {
  readonly status: number;
  /** Of the body. */
  readonly hash: string;
  readonly issuer?: string;
  readonly names?: string;
  readonly serial: string;
}

/** A response, with the certificate of its connection; undefined where there is none. */
function seen(site: SiteName, path: string): Promise<Seen | undefined> {
  return new Promise((resolve) => {
    const options = {
      host: "127.0.0.1",
      port: ca.tlsPort,
      path,
      servername: nameOf(site),
      headers: { host: nameOf(site) },
      rejectUnauthorized: false,
      agent: false,
    };
    const none = (): void => resolve(undefined);
    get(options, (response) => {
      const certificate = (response.socket as TLSSocket).getPeerCertificate();
      const pieces: Buffer[] = [];
      response.on("data", (piece: Buffer) => pieces.push(piece)).on("error", none);
      response.on("end", () =>
        resolve({
          status: response.statusCode!,
          hash: hashOf(Buffer.concat(pieces)),
          issuer: /Pebble/.exec(String(certificate.issuer.CN))?.[0],
          names: certificate.subjectaltname,
          serial: certificate.serialNumber,
        }),
      );
    }).on("error", none);
  });
}
