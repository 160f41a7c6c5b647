import { Lazy, TerraformVariable, type TerraformStack } from "cdktf";
import {
  Action,
  AlertRules,
  FileSyncFrontEnd,
  Host,
  HostFile,
  type Listener,
  Mode,
  Notification,
  renderAlertRules,
  ReverseProxy,
  type ReverseProxyProps,
  TlsMaterial,
} from "../../src/index.js";
import { newStack, synthesize } from "../../testkit/stacks.js";

/** What may be meant, but is more often a mistake: a warning, and none for its neighbours. */

interface Site {
  readonly stack: TerraformStack;
  readonly host: Host;
  readonly proxy: ReverseProxy;
  readonly http: Listener;
}

function warningsOf(make: (site: Site) => unknown, props: Partial<ReverseProxyProps> = {}): string {
  const stack = newStack();
  const host = new Host(stack, "host", { address: "192.0.2.10", publicName: "files.example.org" });
  const proxy = new ReverseProxy(stack, "proxy", { host, ...props });
  const http = proxy.addListener("http", { port: 80 });
  const standard = proxy.addVirtualServer("default", {
    serverNames: ["_"],
    listeners: [http],
    default: true,
  });
  standard.addRoute("none", { path: "/none", action: Action.respond(404) });
  make({ stack, host, proxy, http });
  synthesize(stack);
  return stack.node
    .findAll()
    .flatMap(({ node }) => node.metadata.filter(({ type }) => type === "@cdktf/warn"))
    .map(({ data }) => String(data))
    .join("\n");
}

const upstream =
  (fields: object) =>
  ({ proxy }: Site) => {
    const app = proxy.addUpstream("app", { url: "http://10.0.0.1:8000", ...fields });
    proxy.virtualServers[0]!.addRoute("app", { path: "/app", action: Action.proxy(app) });
  };
const respond =
  (body: string) =>
  ({ proxy }: Site) =>
    proxy.virtualServers[0]!.addRoute("text", { path: "/text", action: Action.respond(200, { body }) });
const secure =
  (serverNames: readonly string[], plainNames: readonly string[]) =>
  ({ proxy, http }: Site) => {
    const material = TlsMaterial.fromFiles({ certificate: "/c.pem", key: "/k.pem" });
    const https = proxy.addListener("https", { port: 443, tls: { material } });
    const add = (id: string, names: readonly string[], listeners: readonly Listener[], isDefault: boolean) =>
      proxy
        .addVirtualServer(id, { serverNames: names, listeners, default: isDefault })
        .addRoute("all", { path: "/all", action: Action.respond(200) });
    add("site", serverNames, [https], true);
    if (plainNames.length > 0) add("plain", plainNames, [http], false);
  };
const acme =
  (names: readonly string[] | undefined) =>
  ({ proxy, http }: Site) => {
    const material = TlsMaterial.acme({ email: "a@portico.dev", agreeToTerms: true, names });
    const https = proxy.addListener("https", { port: 443, tls: { material } });
    proxy
      .addVirtualServer("site", { serverNames: ["a.portico.dev", "b.portico.dev"], listeners: [https, http] })
      .addRoute("all", { path: "/", action: Action.respond(200) });
    proxy
      .addVirtualServer("others", { serverNames: ["_"], listeners: [https], default: true })
      .addRoute("all", { path: "/", action: Action.respond(404) });
  };
const file =
  (mode: "0600" | "0644", sensitive: boolean) =>
  ({ stack, host }: Site) => {
    const secret = new TerraformVariable(stack, "secret", { type: "string", sensitive });
    return new HostFile(stack, "file", { host, path: "/etc/a", mode, content: `a ${secret.stringValue}` });
  };
const target = (url: string) => ({
  notifications: { targets: [Notification.webhook({ name: "chat", url })] },
});
const alerts = ({ stack }: Site) => new AlertRules(stack, "alerts", { file: "rules.yml" });

test.each<[string, string, (site: Site) => unknown, Partial<ReverseProxyProps>?]>([
  [
    "seconds for an upstream",
    "`readTimeoutMs` is 60 ms, which is 0.06 s. If 60 s",
    upstream({ readTimeoutMs: 60 }),
  ],
  [
    "seconds for the proxy",
    "`timeouts.keepAliveMs` is 75 ms",
    () => undefined,
    { timeouts: { keepAliveMs: 75 } },
  ],
  ["a body with a placeholder", "The body contains `$remote_addr`", respond("You are $remote_addr.\n")],
  ["a name on https only", "no virtual server has the names a.example", secure(["a.example"], [])],
  [
    "one of two names",
    "no virtual server has the names b.example",
    secure(["a.example", "b.example"], ["a.example"]),
  ],
  ["names to request without the site's", "do not contain b.portico.dev", acme(["a.portico.dev"])],
  ["a sensitive variable that all may read", "contains the sensitive variable secret", file("0644", true)],
  ["a webhook of a chat", "`urlFile`", () => undefined, target("https://hooks.slack.com/services/T0/B0/x")],
  [
    "a webhook with a token",
    "`urlFile`",
    () => undefined,
    target("https://a.example/hook/Zm9vYmFyMTIzNDU2Nzg5MGFiY2Rl"),
  ],
  ["alerts without metrics", "No proxy of this app serves metrics", alerts],
])("%s: a warning", (_, text, make, props = {}) => {
  expect(warningsOf(make, props)).toContain(text);
});

test.each<[string, (site: Site) => unknown, Partial<ReverseProxyProps>?]>([
  ["a short time to connect", upstream({ connectTimeoutMs: 800 })],
  ["a time of its own", upstream({ readTimeoutMs: 5_000 })],
  ["no hold", upstream({ holdMs: 0 })],
  ["a body with a price", respond("Costs $5.\n")],
  ["a name on both", secure(["a.example"], ["a.example"])],
  ["a name below a wildcard", secure(["a.example.org"], ["*.example.org"])],
  ["names that follow from the virtual servers", acme(undefined)],
  ["a wildcard's and its own names", acme(["a.portico.dev", "b.portico.dev"])],
  ["a sensitive variable for root", file("0600", true)],
  ["another variable", file("0644", false)],
  ["a webhook without a secret", () => undefined, target("https://alerts.example.org/portico")],
  ["alerts with metrics", alerts, { metricsListener: { address: "127.0.0.1", port: 9181 } }],
])("%s: no warning", (_, make, props = {}) => {
  expect(warningsOf(make, props)).toBe("");
});

test.each([
  ["a TLS key", "/srv/sync/conf/k.pem", "/etc/portico/apikey", "https.tls.key` is /srv/sync/conf/k.pem"],
  [
    "a request field",
    "/etc/portico/k.pem",
    "/srv/sync/apikey",
    "setHeadersFromCredential.X-Key` is /srv/sync/apikey",
  ],
  ["neither", "/etc/portico/k.pem", "/srv/synchronous/apikey", undefined],
])("%s in the application's directory", (_, key, field, warning) => {
  const stack = newStack();
  const material = TlsMaterial.fromFiles({ certificate: "/etc/portico/c.pem", key });
  const front = new FileSyncFrontEnd(stack, "files", {
    host: { address: "192.0.2.10", publicName: "files.example.org" },
    mode: Mode.tls({ material }),
    installDirectory: "/srv/sync",
  });
  const app = front.proxy.addUpstream("app", { url: "http://127.0.0.1:9000" });
  const action = Action.proxy(app, { setHeadersFromCredential: { "X-Key": field } });
  front.application.addRoute("app", { path: "/app", action });
  synthesize(stack);
  const said = stack.node
    .findAll()
    .flatMap(({ node }) => node.metadata.filter(({ type }) => type === "@cdktf/warn"))
    .map(({ data }) => String(data));
  expect(said).toEqual(warning === undefined ? [] : [expect.stringContaining(warning)]);
});

test("two files at one path from functions are refused", () => {
  const path = () => Lazy.stringValue({ produce: () => "/etc/a" });
  const add = (paths: readonly string[]) => {
    const stack = newStack();
    const host = new Host(stack, "host", { address: "192.0.2.10" });
    paths.forEach((one, i) => new HostFile(stack, `file${i}`, { host, path: one, content: "" }));
    return () => synthesize(stack);
  };
  expect(add([path(), path()])).toThrow(
    /stack\/file1: is already written by stack\/file0 \[files\.duplicate-path\]/,
  );
  expect(add(["/etc/a", path()])).toThrow(/stack\/file1: is already written by stack\/file0/);
  expect(add(["/etc/b", path()])).not.toThrow();
});

test.each([Number.NaN, -1, 0, 101, Infinity])("`renderAlertRules` refuses %d percent", (errorPercentMax) => {
  expect(() => renderAlertRules({ errorPercentMax })).toThrow(
    /renderAlertRules\.errorPercentMax: is out of range/,
  );
});
