import type { Evidence, PublicAddress } from "../../src/host/diagnosis/evidence.js";
import { diagnose } from "../../src/host/diagnosis/rows/rows.js";
import { type DeploymentInput, parseConfig, parseDeployment } from "../../src/model/index.js";
import { siteConfig } from "../../testkit/siteConfig.js";

const GIVEN = "198.41.0.4";
const INNER = "10.0.0.5";

function evidence(seen: Partial<PublicAddress> | undefined, listened = "0.0.0.0"): Evidence {
  const input = siteConfig({ mode: "plain", host: GIVEN });
  const listeners = input.listeners.map((listener) => ({ ...listener, address: listened }));
  const config = parseConfig({ ...input, listeners });
  const path = "/etc/portico/portico.json";
  const deployment = parseDeployment({
    version: 1,
    config: path,
    files: [{ path, mode: "0644", sha256: "0".repeat(64), role: "config" }],
    services: { proxy: { service: "portico.service", socket: "portico.socket" } },
    network: { addresses: [GIVEN], dnsRecords: [], loopbackPorts: [] },
  } satisfies DeploymentInput);
  if (!config.ok || !deployment.ok) throw new Error(JSON.stringify([config, deployment]));
  return {
    place: "host",
    config: config.value,
    deployment: deployment.value,
    responses: [],
    ownAddresses: new Set(["127.0.0.1", INNER]),
    publicAddresses: seen === undefined ? [] : [{ address: GIVEN, own: false, outcome: SILENT, ...seen }],
  };
}

const SILENT: PublicAddress["outcome"] = { failure: { code: "ETIMEDOUT", message: "no response" } };
const RESPONSE = {
  response: { status: 200, headers: {}, body: "" },
} as unknown as PublicAddress["outcome"];

/** Which socket is a listener's, and which listeners another machine can ask. */
test.each<[string, string, Partial<Evidence>, "ok" | "failed"]>([
  ["on its own address", INNER, { sockets: [{ address: INNER, port: 80 }] }, "ok"],
  ["that something else has elsewhere", INNER, { sockets: [{ address: "127.0.0.1", port: 80 }] }, "failed"],
  ["that all addresses cover", INNER, { sockets: [{ address: "0.0.0.0", port: 80 }] }, "ok"],
  [
    "whose address something else has, on another port",
    INNER,
    { sockets: [{ address: "0.0.0.0", port: 81 }] },
    "failed",
  ],
  ["on all addresses", "0.0.0.0", { sockets: [{ address: "0.0.0.0", port: 80 }] }, "ok"],
  ["closed for others", INNER, { openPorts: new Map([[80, false]]) }, "failed"],
  ["on loopback, closed for others", "127.0.0.1", { openPorts: new Map([[80, false]]) }, "ok"],
])("a listener %s", (_what, listened, more, status) => {
  const rows = diagnose({ ...evidence(undefined, listened), ...more });
  expect(rows.find(({ id }) => id === "ports")!.status).toBe(status);
});

test("loopback is an address that every host has", () => {
  const { deployment, ...rest } = evidence(undefined, "127.0.0.2");
  expect(diagnose(rest).find(({ id }) => id === "addresses")!.status).toBe("ok");
});

test("addresses are compared by value, not as text", () => {
  const seen = evidence({ outcome: RESPONSE });
  const [listener] = seen.config.listeners;
  const config = { ...seen.config, listeners: [{ ...listener!, address: "2001:DB8:0::11" }] };
  const network = { ...seen.deployment!.network!, addresses: ["2001:db8:0:0:0:0:0:10"] };
  const deployment = { ...seen.deployment!, network };
  const ownAddresses = new Set(["2001:db8::10", "2001:db8::11"]);
  const rows = diagnose({ ...seen, config, deployment, ownAddresses });
  expect(rows.find(({ id }) => id === "addresses")!.status).toBe("ok");
});
