import type { Overview } from "../src/runtime/status/overview.js";

/**
 * An overview with something of everything.
 *
 * @param text every text in it, by what it would be otherwise
 */
export function sampleOverview(text: (usual: string) => string = (usual) => usual): Overview {
  const at = Date.UTC(2026, 2, 1, 12);
  return {
    version: text("0.1.0"),
    at,
    since: at - 273_600_000,
    generation: 5,
    state: "serving",
    workers: { running: 2, silent: 0 },
    listeners: [text("http 0.0.0.0:80"), text("https 0.0.0.0:443")],
    traffic: {
      ...{ requests: 31.4, bytesIn: 8.4e6, bytesOut: 2.1e6, connections: 48 },
      history: {
        ...{ everyMs: 5_000, periods: 180 },
        ...{ requests: [1, 5, 2, 8], bytesIn: [10, 20, 30, 40], bytesOut: [5, 4, 3, 2] },
      },
    },
    transfers: (["upload", "download", "tunnel"] as const).map((kind, id) => ({
      ...{
        pid: 77,
        id,
        kind,
        status: 200,
        ageMs: 61_000,
        bytesPerSecond: 5_000,
        bytesIn: 700,
        bytesOut: 300,
      },
      ...{ server: text("application"), route: text("files"), path: text("/files/…/") },
      ...{
        file: text("report.pdf"),
        method: text("PUT"),
        client: text("192.0.2.7"),
        program: text("rclone/v1"),
      },
      ...(kind === "tunnel" ? {} : { bytesTotal: 1_000 }),
    })),
    moreTransfers: 3,
    upstreams: [
      {
        name: text("web"),
        servers: [
          { url: text("http://10.0.0.7:8000"), backup: false, state: "up", failures: 0, inProgress: 4 },
          {
            url: text("http://10.0.0.8:8000"),
            backup: true,
            state: "down",
            failures: 12,
            why: text("refused"),
          },
        ],
      },
    ],
    certificates: [
      {
        ...{ names: [text("files.example.org")], listeners: [text("https")], issuer: text("R11") },
        ...{ source: "acme", notAfter: at + 9 * 86_400_000, daysLeft: 9, end: "soon" },
        problem: { message: text("the authority refused"), fix: text("Wait.") },
      },
    ],
    pauses: [text("Every site is in maintenance")],
    events: [
      {
        ...{
          at: at - 40_000,
          level: "error",
          message: text("reload refused; the current config stays in force"),
        },
        problems: [
          { path: text("listeners[0].port"), message: text("is taken"), fix: text("Take another.") },
        ],
      },
    ],
    topology: {
      columns: [
        {
          title: text("Listeners"),
          nodes: [{ id: "l0", kind: "listener", lines: [text("http 0.0.0.0:80")] }],
        },
        { title: text("Virtual servers"), nodes: [{ id: "v0", kind: "server", lines: [text("any name")] }] },
        {
          title: text("Routes"),
          nodes: [{ id: "r0", kind: "route", lines: [text("/files"), text("and below")] }],
        },
        {
          title: text("Lead to"),
          nodes: [{ id: "g0", kind: "upstream", lines: [text("web")], trouble: true }],
        },
      ],
      edges: [
        { from: "l0", to: "v0", requests: 12 },
        { from: "v0", to: "r0", requests: 12 },
        { from: "r0", to: "g0", requests: 0 },
      ],
    },
  };
}

/**
 * The overview of a house with as many sites, each with an upstream of two servers, one down, and a certificate.
 *
 * @param word ends the names and the path of a transfer
 */
export function manySites(sites: number, word = ""): Overview {
  const one = sampleOverview();
  const [upstream, certificate] = [one.upstreams[0]!, one.certificates[0]!];
  const all = Array.from({ length: sites }, (_, i) => `site${i}${word}`);
  return {
    ...one,
    at: Date.now(),
    transfers: one.transfers.map((transfer) => ({ ...transfer, path: `/${word}`, file: `${word}.pdf` })),
    upstreams: all.map((name) => ({
      name,
      servers: upstream.servers.map((server) => ({
        ...server,
        url: `http://${name}.internal.example.org:8000`,
      })),
    })),
    certificates: all.map((name) => ({
      ...certificate,
      names: [`${name}.example.org`, `www.${name}.example.org`],
    })),
    topology: {
      ...one.topology,
      columns: one.topology.columns.map(({ title, nodes: [node] }) => ({
        title,
        nodes: all.map((name, i) => ({ ...node!, id: `${node!.id[0]}${i}`, lines: [name] })),
      })),
    },
  };
}
