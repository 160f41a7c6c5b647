import type { X509Certificate } from "node:crypto";
import { isIP } from "node:net";
import { Aspects } from "cdktf";
import type { IConstruct } from "constructs";
import type { ProxyConfigInput } from "../../model/index.js";
import { coversName } from "../../model/net/certificateName.js";
import { CATCH_ALL, NameTable } from "../../model/net/serverName.js";
import { certificateHere } from "./certificatesHere.js";
import { isDescribed } from "./deploymentDocument.js";
import type { IHost } from "../host/host.js";
import type { IListener, Listener } from "./listener.js";
import { isKnown } from "../props/tokens.js";
import { isWithin } from "./servedDirectories.js";
import { warn } from "../props/warn.js";
import type { IUpstream } from "./upstream.js";
import type { Route } from "./route.js";
import type { TlsFiles } from "./tlsMaterial.js";
import { warnOfValues } from "./valueWarnings.js";
import type { VirtualServer } from "./virtualServer.js";

interface WarnedProxy extends IConstruct {
  /** Undefined in containers, where an application's data brings expected responses that only a host checks. */
  readonly host?: IHost;
  readonly config: ProxyConfigInput;
  readonly listeners: readonly Listener[];
  readonly upstreams: readonly IUpstream[];
  readonly virtualServers: readonly VirtualServer[];
  readonly usedTlsFiles: readonly (readonly [at: string, files: TlsFiles])[];
  readonly credentialFiles: readonly (readonly [at: string, file: string])[];
  /** Directories and files of the application, on a host. */
  readonly privateFiles?: readonly string[];
  namesOn(listener: IListener): readonly string[];
  onThisMachine(path: string): string | undefined;
}

/**
 * Warns, when the app is synthesized, about settings that work but are probably not intended. `portico check` does not
 * report them, because the host would serve.
 */
export function warnOf(proxy: WarnedProxy): void {
  let warned = false;
  Aspects.of(proxy).add({
    visit: (node) => {
      if (node !== proxy || warned) return;
      warned = true;
      warnOfParts(proxy);
      warnOfUnread(proxy);
      warnOfValues(proxy);
      warnOfApplicationPaths(proxy);
      proxy.listeners.forEach((listener) => warnOfListener(proxy, listener));
      for (const server of proxy.virtualServers) {
        if (server.tlsFiles !== undefined) warnOfNames(proxy, server, server.tlsFiles, server.serverNames);
      }
    },
  });
}

/** @internal Routes of an application's definition, where a path that looks like a pattern is meant literally. */
export const literalPaths = new WeakSet<Route>();

function warnOfParts(proxy: WarnedProxy): void {
  const used = new Set(
    proxy.virtualServers.flatMap(({ routes }) => routes.map(({ action }) => action.upstream)),
  );
  for (const upstream of proxy.upstreams.filter((u) => !used.has(u))) {
    warn(
      upstream,
      "No route uses this upstream: add a route with `Action.proxy(upstream)`, or remove the upstream.",
    );
  }
  for (const route of proxy.virtualServers.flatMap(({ routes }) => routes)) {
    if (literalPaths.has(route)) continue;
    const pattern = isKnown(route.path) ? /\*|\/[:{]/.exec(route.path)?.[0].replace("/", "") : undefined;
    if (pattern === undefined) continue;
    warn(
      route,
      `The path ${route.path} contains \`${pattern}\`, which has no special meaning: paths are not patterns. ` +
        '`match: "segment"` matches the path and everything below it, `match: "exact"` only the path itself.',
    );
  }
  for (const { routes } of proxy.virtualServers) routes.forEach((route) => warnOfRoute(route, routes));
  for (const server of proxy.virtualServers.filter(({ routes }) => routes.length === 0)) {
    warn(server, "This virtual server has no routes: it responds to every request with 404.");
  }
  for (const server of proxy.virtualServers.filter(({ asksForHsts }) => asksForHsts)) {
    const names = [...server.serverNames, ...server.listeners.flatMap((one) => proxy.namesOn(one))];
    const real = names.filter((name) => name !== CATCH_ALL);
    if (real.length === 0 || !real.every((name) => isKnown(name) && isIP(name) !== 0)) continue;
    warn(
      server,
      "`hsts` has no effect: all names of the virtual server are IP addresses, and browsers ignore `hsts` for them " +
        "(RFC 6797, 8.1.1). Set the host's `publicName`.",
    );
  }
}

function warnOfUnread({ host, virtualServers }: WarnedProxy): void {
  if (host === undefined || isDescribed(host)) return;
  for (const part of virtualServers.flatMap((server) => [server, ...server.routes]))
    if (part.expects)
      warn(
        part,
        "`expect` has no effect: the host gets no deployment that lists expected responses. Add an `Activation` of the " +
          "proxy's service.",
      );
}

/** Root reads such a file only if no other user can put another file there (`trustedFile.ts`). */
function warnOfApplicationPaths(proxy: WarnedProxy): void {
  const { usedTlsFiles, credentialFiles, privateFiles = [] } = proxy;
  const tls = usedTlsFiles.flatMap(([at, { key }]) =>
    key === undefined ? [] : [[`${at}.key`, key] as const],
  );
  for (const [at, file] of [...tls, ...credentialFiles]) {
    const directory = privateFiles.find((place) => isKnown([file, place]) && isWithin(file, place));
    if (directory === undefined) continue;
    warn(
      proxy,
      `\`${at}\` is ${file}, in a directory of the application: if the application's user may change ${directory}, ` +
        "the host refuses the file. Put the file where only root may, such as /etc/portico.",
    );
  }
}

function warnOfRoute(route: Route, all: readonly Route[]): void {
  const { path, match, action } = route.render();
  const taken = all.find((one) => one !== route && one.path === path && one.render().match === "prefix");
  if ((match ?? "segment") === "segment" && taken !== undefined) {
    warn(
      route,
      `This route takes the requests for ${path} and everything below it from ${taken.node.path}, ` +
        'which has the same path with `match: "prefix"`. Use another path for this route, or change the other route with ' +
        "`replaceAction`.",
    );
  }
  const secret = Object.keys((action.type === "proxy" && action.setHeaders) || {}).find((name) =>
    SECRET_FIELD.test(name),
  );
  if (secret === undefined) return;
  warn(
    route,
    `\`setHeaders\` contains ${secret}, but every user of the host can read the config. If the value is a secret, write ` +
      `it into a file that only root can read, and use \`setHeadersFromCredential: { "${secret}": "/etc/…" }\`.`,
  );
}

/** Request fields that carry secrets. */
const SECRET_FIELD = /^(?:proxy-)?authorization$|^cookie$|secret|token|password|api-?key|credential/i;

function warnOfListener(proxy: WarnedProxy, listener: Listener): void {
  const { tls, tlsFiles, asksForHttp2 } = listener;
  if (tls === undefined || tlsFiles === undefined) {
    if (asksForHttp2) warn(listener, "`http2` has no effect without TLS: set `tls`, or remove `http2`.");
    return;
  }
  warnOfNames(proxy, listener, tlsFiles, proxy.namesOn(listener));
}

/** Warns of names that a certificate does not cover, if it is on the machine that synthesizes. */
function warnOfNames(
  proxy: WarnedProxy,
  user: Listener | VirtualServer,
  { selfSigned, certificate, acme }: TlsFiles,
  names: readonly string[],
): void {
  if (acme !== undefined) warnOfRequestedNames(user, acme().names, names);
  if (selfSigned !== undefined || certificate === undefined) return;
  const read = certificateHere(proxy, certificate);
  const missing = read === undefined ? [] : notCovered(read, names);
  if (missing.length === 0) return;
  warn(user, `The certificate ${certificate} does not cover ${missing.join(", ")}: browsers will refuse it.`);
}

/** Warns of names that a certificate will not cover, because the names to request are listed. */
function warnOfRequestedNames(
  user: Listener | VirtualServer,
  requested: readonly string[],
  names: readonly string[],
): void {
  const covered = new NameTable<true>();
  covered.add(requested, true);
  const missing = [...new Set(names)].filter(
    (name) => name !== CATCH_ALL && isKnown([name, requested]) && covered.find(name) === undefined,
  );
  if (missing.length === 0) return;
  warn(
    user,
    `The \`names\` of the certificate do not contain ${missing.join(", ")}: browsers will refuse it there. Without ` +
      "`names`, the certificate is for the names of the virtual servers.",
  );
}

const notCovered = (certificate: X509Certificate, names: readonly string[]): string[] =>
  [...new Set(names)].filter((name) => name !== CATCH_ALL && isKnown(name) && !coversName(certificate, name));
