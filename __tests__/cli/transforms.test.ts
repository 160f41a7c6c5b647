import { readyPreview, readyText } from "../../src/cli/commands/previewCommand.js";
import { previewConfig } from "../../src/cli/previewConfig.js";
import { parseConfig, type ProxyConfig } from "../../src/model/index.js";
import { siteConfig, type SiteOptions } from "../../testkit/siteConfig.js";

function site(options: SiteOptions): ProxyConfig {
  const result = parseConfig(siteConfig(options));
  if (!result.ok) throw new Error(JSON.stringify(result.problems));
  return result.value;
}

function previewed(
  config: ProxyConfig,
  portOffset = 10_000,
  upstreams?: Record<string, string>,
): ProxyConfig {
  const result = previewConfig(config, { portOffset, upstreams });
  if (!result.ok) throw new Error(JSON.stringify(result.problems));
  return result.value;
}

function problemsOf(config: ProxyConfig, portOffset: number, upstreams?: Record<string, string>) {
  const result = previewConfig(config, { portOffset, upstreams });
  return result.ok ? [] : result.problems;
}

const urls = (config: ProxyConfig): string[] =>
  config.listeners.map((l) => `${l.protocol} ${l.address} ${l.port}`);

describe("previewConfig", () => {
  const tls = site({ mode: "tls", address: "192.0.2.10", ipv6: "2001:db8::10" });

  test("has no metrics listener of the host, but one on loopback for the status, if it is wanted", () => {
    const host = {
      ...tls,
      metricsListener: { address: "192.0.2.10", port: 9_145, allow: [], anyAddress: false },
    };
    expect(previewed(host as ProxyConfig).metricsListener).toBeUndefined();
    const shown = previewConfig(host as ProxyConfig, { portOffset: 10_000, statusPort: 19_145 });
    expect(shown.ok && shown.value.metricsListener).toMatchObject({ address: "127.0.0.1", port: 19_145 });
  });

  test("moves listeners to loopback, the redirect along with them, and leaves the rest", () => {
    const moved = previewed(tls);
    expect(urls(moved)).toEqual([
      "http 127.0.0.1 10080",
      "https 127.0.0.1 10443",
      "http ::1 10080",
      "https ::1 10443",
    ]);
    const redirect = moved.virtualServers[1]!.routes[0]!.action;
    expect(redirect).toEqual({
      type: "redirect",
      status: 301,
      scheme: "https",
      port: 10443,
      keep: "nothing",
    });
    expect(moved.listeners[1]!.tls).toEqual(tls.listeners[1]!.tls);
    expect(moved.virtualServers[2]!.serverNames).toEqual(["_"]);
    expect(moved.upstreams).toEqual(tls.upstreams);
  });

  test("leaves every log file out: a preview writes nothing to the host", () => {
    expect(JSON.stringify(tls)).toContain(".log");
    expect(JSON.stringify(previewed(tls))).not.toContain(".log");
  });

  test("a browser connects to it directly: without the ports that clients use, and without PROXY protocol headers", () => {
    const input = siteConfig({ mode: "tls" });
    const more = { publishedPort: 443, proxyProtocol: { from: ["127.0.0.1"] } };
    const config = parseConfig({
      ...input,
      listeners: input.listeners.map((one) => (one.name === "https" ? { ...one, port: 8443, ...more } : one)),
    });
    if (!config.ok) throw new Error(JSON.stringify(config.problems));
    const moved = previewed(config.value);
    expect(moved.listeners[1]).toMatchObject({ port: 18443 });
    expect(JSON.stringify(moved)).not.toMatch(/publishedPort|proxyProtocol/);
    expect(moved.virtualServers[1]!.routes[0]!.action).toMatchObject({ scheme: "https", port: 18443 });
  });

  test.each<[string, object]>([
    ["another host", { host: "other.example.org" }],
    ["a port that is not a listener's", { port: 8443 }],
    ["another scheme than the listener's", { scheme: "http", port: 443 }],
  ])("a redirect to %s stays", (_what, target) => {
    const input = JSON.parse(JSON.stringify(siteConfig({ mode: "tls" })));
    input.virtualServers[1].routes[0].action = { type: "redirect", ...target };
    const config = parseConfig(input);
    const action = config.ok && config.value.virtualServers[1]!.routes[0]!.action;
    expect(action).toMatchObject(target);
    expect(config.ok && previewed(config.value).virtualServers[1]!.routes[0]!.action).toEqual(action);
  });

  test("listeners that would collide on loopback take the next port", () => {
    const input = siteConfig({ mode: "plain", address: "192.0.2.10" });
    const second = { name: "inside", address: "10.0.0.10", port: 80, protocol: "http" as const };
    const [first, ...servers] = input.virtualServers;
    const config = parseConfig({
      ...input,
      listeners: [...input.listeners, second],
      virtualServers: [{ ...first!, listeners: ["http", "inside"] }, ...servers],
    });
    expect(config.ok && urls(previewed(config.value))).toEqual([
      "http 127.0.0.1 10080",
      "http 127.0.0.1 10081",
    ]);
  });

  test("upstreams can be given other addresses; a problem with one names the option", () => {
    const moved = previewed(tls, 10_000, { web: "http://127.0.0.1:18000" });
    expect(moved.upstreams.map((u) => u.url)).toEqual([
      "http://127.0.0.1:18000",
      "http://127.0.0.1:8082",
      "http://127.0.0.1:8080",
    ]);
    expect(problemsOf(tls, 10_000, { wb: "http://127.0.0.1:1" })).toMatchObject([
      { code: "config.unknown-reference", path: "--upstream", allowed: "web, fileServer, webdav" },
    ]);
    expect(problemsOf(tls, 10_000, { web: "ftp://x" })).toMatchObject([
      { code: "config.bad-url", path: "upstreams[0].url", fix: expect.stringContaining("--upstream") },
    ]);
    expect(problemsOf(tls, 10_000, { web: "http://127.0.0.1:10443" })).toMatchObject([
      { code: "config.proxy-loop" },
    ]);
  });

  test("HSTS is left out: a browser would remember it for localhost", () => {
    const input = siteConfig({ mode: "tls" });
    const [first, second, application] = input.virtualServers;
    const config = parseConfig({
      ...input,
      virtualServers: [first, second, { ...application, hsts: {}, responseHeaders: { remove: ["X-A"] } }],
    });
    if (!config.ok) throw new Error(JSON.stringify(config.problems));
    expect(config.value.virtualServers[2]!.hsts).toBeDefined();
    const moved = previewed(config.value).virtualServers[2]!;
    expect([moved.hsts, moved.responseHeaders.remove]).toEqual([undefined, ["X-A"]]);
  });

  test.each<[what: string, options: SiteOptions, change: (text: string) => string, text: string]>([
    [
      "a name, and the first IPv4 listener",
      { mode: "plain", host: "files.example.org", ipv6: "2001:db8::10" },
      (text) => text.replace(/("listeners":)\[(\{[^}]*\}),(\{[^}]*\})\]/, "$1[$3,$2]"),
      `  http://[::1]:10080/              instead of port 80 of 2001:db8::10
  http://127.0.0.1:10080/          instead of port 80 of 0.0.0.0
Request it by name: curl -k --resolve files.example.org:10080:127.0.0.1 http://files.example.org:10080/
`,
    ],
    [
      "the address itself",
      { mode: "plain", host: "127.0.0.1" },
      (text) => text,
      "  http://127.0.0.1:10080/          instead of port 80 of 0.0.0.0\n",
    ],
  ])("says where it serves: %s", (_what, options, change, text) => {
    const parsed = parseConfig(JSON.parse(change(JSON.stringify(siteConfig(options)))));
    if (!parsed.ok) throw new Error(JSON.stringify(parsed.problems));
    const ready = readyPreview("a.json", parsed.value, previewed(parsed.value));
    expect(readyText(ready)).toBe(`portico preview of a.json\n${text}Stop it with Ctrl-C.\n`);
  });

  test("ports beyond the range are refused with the option to change", () => {
    const problems = problemsOf(tls, 65_200);
    expect(problems.map((p) => [p.code, p.path, p.fix])).toEqual([
      ["config.out-of-range", "listeners[1].port", "Give another --port-offset."],
      ["config.out-of-range", "listeners[3].port", "Give another --port-offset."],
    ]);
  });
});
