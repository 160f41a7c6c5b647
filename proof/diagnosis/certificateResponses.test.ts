import { once } from "node:events";
import { createServer } from "node:https";
import type { AddressInfo } from "node:net";
import * as tls from "node:tls";
import { expectedResponses } from "../../src/host/diagnosis/expected/expectedResponses.js";
import { checkLive } from "../../src/host/diagnosis/expected/liveCheck.js";
import type { ProxyConfigInput, VirtualServerInput } from "../../src/model/index.js";
import { issue } from "../../testkit/certificates.js";
import { siteConfig } from "../../testkit/siteConfig.js";
import { configOf } from "./site.js";

/** A row for each further name that has a certificate of its own, asked of real TLS servers. */

const server = (name: string, serverNames: string[], listeners: string[]): VirtualServerInput => ({
  name,
  serverNames,
  listeners,
  routes: [{ name: "ok", path: "/", match: "prefix", action: { type: "respond", status: 200, body: "ok" } }],
});

/** A front end for files.example.org with a virtual server of its own certificate, and one by ACME. */
function site(port = 443, ipv6?: string): ProxyConfigInput {
  const base = siteConfig({
    mode: "tls",
    host: "files.example.org",
    address: "127.0.0.1",
    ipv6,
  });
  const office = { certificate: "/office.pem", key: "/office.key" };
  const acme = {
    acme: { authority: "ca", names: ["wiki.example.org", "www.example.org", "files.example.org"] },
  };
  const listeners = base.listeners.map((one) =>
    one.tls === undefined
      ? one
      : { ...one, port, tls: { ...one.tls, policy: "mozilla-intermediate", certificates: [office, acme] } },
  );
  const secure = listeners.filter(({ protocol }) => protocol === "https").map(({ name }) => name);
  return {
    ...base,
    certificateAuthorities: [
      { name: "ca", directory: "https://ca.example/dir", agreeToTerms: true, challenge: "tls-alpn-01" },
    ],
    listeners: listeners as ProxyConfigInput["listeners"],
    virtualServers: [
      ...base.virtualServers,
      server("office", ["office.example.org", "192.0.2.77"], secure),
      server("plain", ["plain.example.org"], ["http"]),
      server("wiki", ["wiki.example.org"], secure),
      server("teams", ["*.teams.example.org"], secure),
    ],
  };
}

const rowsOf = (input: ProxyConfigInput) =>
  expectedResponses(configOf(input)).filter(({ certificate }) => certificate);

test("there is a row for each name on each listener", () => {
  const rows = rowsOf(site(443, "::1"));
  expect(new Set(rows.map(({ request }) => request.path))).toEqual(new Set(["/"]));
  expect(rows.map(({ name, request }) => [name, request.host, request.address])).toEqual([
    ["certificate for wiki.example.org", "wiki.example.org", "127.0.0.1"],
    ["certificate for www.example.org", "www.example.org", "127.0.0.1"],
    ["certificate for office.example.org", "office.example.org", "127.0.0.1"],
    ["certificate for *.teams.example.org", "portico-check.teams.example.org", "127.0.0.1"],
    ["certificate for wiki.example.org on IPv6", "wiki.example.org", "::1"],
    ["certificate for www.example.org on IPv6", "www.example.org", "::1"],
    ["certificate for office.example.org on IPv6", "office.example.org", "::1"],
    ["certificate for *.teams.example.org on IPv6", "portico-check.teams.example.org", "::1"],
  ]);
});

test("there is none for the catch-all of another default server", () => {
  const { virtualServers, listeners, ...rest } = site();
  const secure = listeners.filter(({ protocol }) => protocol === "https").map(({ name }) => name);
  const servers = virtualServers.map((one) =>
    one.name === "application" ? { ...one, serverNames: ["files.example.org"], default: false } : one,
  );
  const other = { ...server("other", ["_"], secure), default: true };
  const names = rowsOf({ ...rest, listeners, virtualServers: [...servers, other] });
  expect(names.map(({ request }) => request.host)).toEqual([
    "wiki.example.org",
    "www.example.org",
    "office.example.org",
    "portico-check.teams.example.org",
  ]);
});

test("there is none where there is one certificate, and a front end without TLS has none", () => {
  for (const mode of ["tls", "plain"] as const)
    expect(rowsOf(siteConfig({ mode, host: "files.example.org" }))).toEqual([]);
  const { virtualServers, ...rest } = siteConfig({ mode: "tls", host: "files.example.org" });
  const office = server("office", ["office.example.org"], ["https"]);
  expect(rowsOf({ ...rest, virtualServers: [...virtualServers, office] })).toEqual([]);
});

test.each([true, false])("a certificate of another name fails, also unverified (%s)", async (insecure) => {
  const named = new Map(
    await Promise.all(
      ["files", "office", "wiki"].map(
        async (name) => [name, await issue({ type: "ec", names: [`${name}.example.org`] })] as const,
      ),
    ),
  );
  // Those for www.example.org and *.teams.example.org are missing.
  const chosen = (name: string) => named.get(name.split(".")[0]!) ?? named.get("files")!;
  const listening = createServer(
    {
      ...named.get("files")!,
      SNICallback: (name, done) => done(null, tls.createSecureContext(chosen(name))),
    },
    (_, response) => response.end(),
  );
  await once(listening.listen(0, "127.0.0.1"), "listening");
  const rows = rowsOf(site((listening.address() as AddressInfo).port));
  const checked = await checkLive(rows, { timeoutMs: 5_000, insecure });
  listening.close();
  listening.closeAllConnections();
  if (!insecure) return expect(checked.map(({ pass }) => pass)).toEqual([false, false, false, false]);
  expect(checked.map(({ pass, seen }) => [pass, seen])).toEqual([
    [true, "a certificate for DNS:wiki.example.org"],
    [false, "a certificate for DNS:files.example.org"],
    [true, "a certificate for DNS:office.example.org"],
    [false, "a certificate for DNS:files.example.org"],
  ]);
  expect(checked[1]).toMatchObject({
    expected: "a certificate for www.example.org",
    cause: expect.stringContaining("no certificate of the listener covers this name"),
  });
});
