import { challengeOf } from "../../src/model/config/certificates.js";
import { listenerLedTo, parseConfig, type ProxyConfig } from "../../src/model/index.js";
import { siteConfig } from "../../testkit/siteConfig.js";

/** Ports that something in front maps: rules about what clients reach go by the port that clients use. */

/** Port that the http listener has, and the one that clients use for it. */
function mapped(port: number, publishedPort?: number, redirect: object = {}): ReturnType<typeof parseConfig> {
  const { listeners, virtualServers, ...rest } = siteConfig({ mode: "tls" });
  const http = { port, publishedPort };
  const servers = virtualServers.map((server) =>
    server.name === "redirect"
      ? {
          ...server,
          routes: server.routes!.map((route) => ({
            ...route,
            action: { type: "redirect" as const, ...redirect },
          })),
        }
      : server,
  );
  return parseConfig({
    ...rest,
    listeners: listeners.map((one) =>
      one.name === "http" ? { ...one, ...http } : { ...one, port: 8443, publishedPort: 443 },
    ),
    virtualServers: servers,
  });
}

function valid(result: ReturnType<typeof parseConfig>): ProxyConfig {
  if (!result.ok) throw new Error(JSON.stringify(result.problems));
  return result.value;
}

test("a redirect leads to the listener that clients reach by its port", () => {
  const config = valid(mapped(8081, 80));
  expect(listenerLedTo({ scheme: "https" }, config)?.name).toBe("https");
  expect(listenerLedTo({ scheme: "https", port: 8443 }, config)).toBeUndefined();
  expect(listenerLedTo({ scheme: "http" }, config)?.name).toBe("http");
});

test.each([
  [8081, 80, 80, true],
  [8081, 80, 8081, false],
  [8081, undefined, 8081, true],
  [80, undefined, 80, true],
])("a listener on %s, published as %s, that redirects to port %s", (port, published, to, loops) => {
  const result = mapped(port, published, { scheme: "http", port: to });
  expect(result.ok ? [] : result.problems.map(({ code }) => code)).toEqual(
    loops ? ["config.redirect-loop"] : [],
  );
});

test.each([
  [80, undefined, "http-01"],
  [8081, undefined, "tls-alpn-01"],
  [8081, 80, "http-01"],
  [80, 8081, "tls-alpn-01"],
])("names are proved where an authority gets: %s, published as %s: %s", (port, published, challenge) => {
  const authority = { name: "a", agreeToTerms: true } as Parameters<typeof challengeOf>[1];
  expect(challengeOf(valid(mapped(port, published)), authority)).toBe(challenge);
});
