import { Lazy, TerraformVariable, type TerraformStack } from "cdktf";
import {
  Action,
  AlertRules,
  Application,
  FrontEnd,
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
  (body: string, fields: object = {}) =>
  ({ proxy }: Site) =>
    proxy.virtualServers[0]!.addRoute("text", {
      path: "/text",
      action: Action.respond(200, { body }),
      ...fields,
    });
const errorPage =
  (html: string) =>
  ({ proxy, http }: Site) =>
    proxy
      .addVirtualServer("pages", {
        serverNames: ["p.example"],
        listeners: [http],
        errorPages: [{ statuses: [502], html }],
      })
      .addRoute("all", { path: "/all", action: Action.respond(200) });
const listen =
  ({ tls, ...fields }: { port: number; publishedPort?: number; tls?: object }) =>
  ({ proxy }: Site) => {
    const material = TlsMaterial.fromFiles({ certificate: "/c.pem", key: "/k.pem" });
    const listener = proxy.addListener("more", {
      ...fields,
      ...(tls === undefined ? {} : { tls: { material } }),
    });
    proxy.virtualServers[0]!.addListeners(listener);
  };
const sticky =
  (...cookies: readonly string[]) =>
  ({ proxy }: Site) =>
    cookies.forEach((cookie, i) => {
      const servers = [{ url: `http://10.0.${i}.1:80` }, { url: `http://10.0.${i}.2:80` }];
      const app = proxy.addUpstream(`app${i}`, { servers, sticky: { cookie } });
      proxy.virtualServers[0]!.addRoute(`app${i}`, { path: `/app${i}`, action: Action.proxy(app) });
    });
const authority =
  (directory: string) =>
  ({ proxy, http }: Site) => {
    const material = TlsMaterial.acme({
      email: "a@portico.dev",
      agreeToTerms: true,
      directory,
      names: ["a.portico.dev"],
    });
    const https = proxy.addListener("https", { port: 443, tls: { material } });
    proxy
      .addVirtualServer("site", { serverNames: ["a.portico.dev"], listeners: [https, http], default: false })
      .addRoute("all", { path: "/", action: Action.respond(200) });
    proxy.virtualServers[0]!.addListeners(https);
  };
const challenge =
  (kind: "http-01" | "tls-alpn-01", port: number, httpPort = 8080, publishedPort?: number) =>
  ({ proxy }: Site) => {
    const options = { email: "a@portico.dev", agreeToTerms: true, challenge: kind, names: ["a.portico.dev"] };
    const material = TlsMaterial.acme(options);
    const https = proxy.addListener("https", { port, publishedPort, tls: { material } });
    const plain = proxy.addListener("plain", { port: httpPort });
    proxy
      .addVirtualServer("site", {
        serverNames: ["a.portico.dev", "_"],
        listeners: [https, plain],
        default: true,
      })
      .addRoute("all", { path: "/", action: Action.respond(200) });
  };
const keyFile =
  (mode: "0600" | "0644") =>
  ({ stack, host }: Site) =>
    new HostFile(stack, "file", {
      host,
      path: "/etc/a",
      mode,
      content: "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n",
    });
const unset = process.env.PORTICO_NEVER_SET;
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
    "an hour in seconds",
    "`readTimeoutMs` is 3600 ms, which is 3.6 s. If 3600 s are meant, use 3600000.",
    upstream({ readTimeoutMs: 3_600 }),
  ],
  ["a day in seconds", "`idleTimeoutMs` is 86400 ms", upstream({ idleTimeoutMs: 86_400 })],
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
  ["a limit of megabytes", "`100 * 1024 * 1024`", respond("", { requestBodyBytesMax: 100 })],
  ["a body that is a path", "looks like the path of a file", respond("/srv/www/index.html")],
  ["a body with a placeholder of error pages", "The body contains `{{status}}`", respond("<p>{{status}}")],
  ["an error page with a placeholder of nginx", "An error page contains `$status`", errorPage("<p>$status")],
  [
    "a variable of the environment that is not set",
    '"http://app-undefined:80"',
    upstream({ url: `http://app-${unset}:80` }),
  ],
  [
    "a name with such a variable",
    '`serverNames[0]` is "a.undefined"',
    secure([`a.${unset}`], [`a.${unset}`]),
  ],
  ["a port of https over http", "use https://", upstream({ url: "http://10.0.0.1:443" })],
  ["a port of http over https", "use http://", upstream({ url: "https://10.0.0.1:80" })],
  ["a port of https without TLS", "Port 443 without TLS", listen({ port: 443 })],
  [
    "a published port of http with TLS",
    "Port 80 with TLS",
    listen({ port: 8443, publishedPort: 80, tls: {} }),
  ],
  ["two upstreams with one cookie", "`sticky.cookie` is bound, as in", sticky("bound", "bound")],
  [
    "a directory of tests",
    "which browsers refuse",
    authority("https://acme-staging-v02.api.letsencrypt.org/directory"),
  ],
  [
    "an authority that is gone",
    "does not exist any more",
    authority("https://acme-v01.api.letsencrypt.org/directory"),
  ],
  [
    "an authority without its directory",
    "ends in /directory",
    authority("https://acme-v02.api.letsencrypt.org"),
  ],
  ["a challenge on a port that no authority asks", "on port 443 only", challenge("tls-alpn-01", 8443)],
  ["a private key that all may read", "contains a private key", keyFile("0644")],
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
  ["a private key for root", keyFile("0600")],
  ["a limit of a kibibyte", respond("", { requestBodyBytesMax: 1024 })],
  ["a body about a path", respond("See /srv/www/index.html.\n")],
  ["a body about something undefined", respond("undefined\n")],
  ["a price in an error page", errorPage("<p>It costs $5. {{status}}")],
  ["a name that contains the word", upstream({ url: "http://undefinedness.example:80" })],
  ["a port of neither scheme", upstream({ url: "http://10.0.0.1:8443" })],
  ["a port that a balancer publishes", listen({ port: 443, publishedPort: 8443 })],
  ["two upstreams with two cookies", sticky("bound", "other")],
  ["a challenge on its port", challenge("tls-alpn-01", 443, 8080)],
  ["a challenge on a port that is published as its own", challenge("tls-alpn-01", 8443, 8080, 443)],
  ["a private authority", authority("https://ca.example.org/acme/acme/directory")],
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
  const front = new FrontEnd(stack, "files", {
    host: { address: "192.0.2.10", publicName: "files.example.org" },
    mode: Mode.tls({ material }),
    application: Application.fileSync({ installDirectory: "/srv/sync" }),
  });
  const app = front.proxy.addUpstream("app", { url: "http://127.0.0.1:9000" });
  const action = Action.proxy(app, { setHeadersFromCredential: { "X-Key": field } });
  front.site.virtualServer.addRoute("app", { path: "/app", action });
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
