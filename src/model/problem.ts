/**
 * One finding about a configuration: where it is, what was received, what is allowed and how to fix it.
 *
 * Parsing collects problems and never throws; the caller decides what a problem means.
 */
export interface Problem {
  /** Stable code, one of {@link PROBLEM_CODES}; safe to match on in scripts. */
  readonly code: ProblemCode;
  /** Field path (`listeners[0].port`), construct path or file path; empty for the whole document. */
  readonly path: string;
  /** What is wrong, in one sentence without a full stop. */
  readonly message: string;
  /** The value that was received, shortened; absent where there was none. */
  readonly received?: string;
  /** What would have been accepted. */
  readonly allowed?: string;
  /** What to do about it. */
  readonly fix: string;
}

/** A value, or every reason why there is none. */
export type Result<T> =
  | { readonly ok: true; readonly value: T }
  | { readonly ok: false; readonly problems: readonly Problem[] };

/**
 * Every code a problem can carry, with the general way to solve it. `docs/errors.md` explains each of them, with an
 * example; a test checks that both list the same codes.
 */
export const PROBLEM_CODES = {
  "config.not-json": "The file is not JSON: fix the syntax at the line and column given.",
  "config.unsupported-version": "Use a `version` this release reads, or upgrade portico.",
  "config.missing-field": "Add the field.",
  "config.unknown-field": "Remove the field or correct its spelling.",
  "config.wrong-type": "Give a value of the type named.",
  "config.out-of-range": "Give a value within the range named.",
  "config.not-one-of": "Give one of the values named.",
  "config.bad-name": "Use letters, digits, `-`, `_` and `.`; begin with a letter or digit.",
  "config.bad-address": "Give an IP address (or CIDR range) as the field asks.",
  "config.bad-server-name": "Give a host name, an IP address or `_`, in lower case and without a port.",
  "config.bad-url":
    "Give `http://HOST:PORT` or `https://HOST:PORT` in lower case: no user, and nothing after the port; or `unix:/PATH` for a Unix socket.",
  "config.bad-file-path": "Give an absolute, normalised path.",
  "config.bad-route-path":
    "Begin with `/`; no `//`, `.` or `..` segments, percent-encoding, `?`, `#` or control bytes.",
  "config.bad-header": "Give a field name that is a token and a value without control bytes.",
  "config.reserved-response-field": "Leave the field to the application and the proxy.",
  "config.duplicate-response-field": "Name each field once.",
  "config.bad-error-page": "Change the page as the problem says.",
  "config.duplicate-error-page": "Give each status one page.",
  "config.hsts-without-tls": "Remove `hsts`, or give the virtual server an https listener.",
  "config.hsts-preload":
    "Set `includeSubDomains: true` and a `maxAge` of at least 31536000, or leave `preload` out.",
  "config.hsts-self-signed":
    "Use a certificate that browsers trust, or set `force: true` if every client trusts this one.",
  "config.everyone-allowed": "Name the addresses of administrators.",
  "config.everyone-trusted":
    "Give the addresses of the proxies in front of this one; if something else keeps all others away, set `trustEveryone: true`.",
  "config.private-directory": "Serve a separate directory for files that everyone may read.",
  "config.bad-cipher-string": "Give an OpenSSL cipher string.",
  "config.bad-redirect-path": "Encode other characters (`%20` for a space); give another host as `host`.",
  "config.bad-rewrite": "Encode other characters (`%20` for a space); begin with `/`.",
  "config.bad-text": "Remove control characters.",
  "config.duplicate-name": "Give each item of the same kind a different name.",
  "config.duplicate-id": "Choose another id.",
  "config.missing-package": "Install the package.",
  "config.unknown-reference": "Name something that is defined, or define it.",
  "config.duplicate-listener": "Keep only one listener for each address and port.",
  "config.port-conflict":
    "A wildcard listener already takes the port: keep the wildcard or the single addresses.",
  "config.public-health-listener":
    "Listen on 127.0.0.1 or on a private address of the host; in a container on `0.0.0.0`, with `anyAddress: true`.",
  "config.notification-url":
    "Give the target `url`, which is `https` without user, query and fragment, or where the URL is a secret `urlFile`, and not both.",
  "config.public-metrics-listener":
    "Listen on 127.0.0.1, on a private address of the host or on a Unix socket; or say who may ask (`allow`).",
  "config.tls-missing": "Give the https listener a `tls` section with certificate and key.",
  "config.tls-unexpected": "Remove `tls`, or make the listener or the upstream's URL `https`.",
  "config.certificate-source":
    "Give `certificate` and `key` for a certificate from files, or `acme` for one that the proxy gets from an authority.",
  "config.duplicate-server-name": "Give each server name only once on a listener.",
  "config.duplicate-default-server": "Let one virtual server be the default of a listener.",
  "config.no-default-server": "Set `default: true` on the virtual server that answers for unknown names.",
  "config.duplicate-route": "Keep only one route for the path.",
  "config.shadowed-route": "Remove the route that can never match, or change one of the paths.",
  "config.redirect-loop": "Redirect to a scheme, port, host or path that does not redirect back.",
  "config.body-not-allowed": "Leave the body out, or answer with another status.",
  "config.proxy-loop": "Point the upstream at the application, not at a listener of this proxy.",
  "config.bad-servers": "Give each server of the upstream once, and one at least that is no backup.",
  "config.used-once": "Remove the field, or `proxyProtocol`.",
  "config.bad-cookie": "Give the name of a cookie: letters, digits, `-` and `_`.",
  "config.no-trusted-proxies":
    "Name the proxies that send the field in `trustedProxies`, or leave it out: Portico believes no other sender.",
  "config.announced-and-trusted":
    "Leave the address out of `trustedProxies`: clients are named by the PROXY protocol header.",
  "config.ipv6-only": "Add an IPv4 listener: IPv6-only hosts are not supported.",
  "acme.bad-directory":
    "Give the `https` URL of the authority's ACME directory, or of the acme-dns server, as it is documented there.",
  "acme.bad-name":
    "Give a lower-case host name, `*.` and a host name, or an IP address. The names of zones and records have no `*`.",
  "acme.bad-email": "Give one mail address.",
  "acme.terms-not-agreed": "Read the authority's terms of service, and set `agreeToTerms: true`.",
  "acme.private-name":
    "Give a name of the public DNS, use a private authority and give its `roots`, or a self-signed certificate.",
  "acme.wildcard-challenge":
    "Give `dns`, and leave `challenge` out or set it to `dns-01`: only a DNS record proves a wildcard. Or bring the certificate as files.",
  "acme.address-challenge":
    "Give the address a separate authority with the challenge `http-01` or `tls-alpn-01`, or remove it.",
  "acme.dns-missing": "Say in `dns` who writes the DNS records.",
  "acme.outside-zone":
    "Give the zone that the record is in; where a CNAME record leads to another zone, its target as `alias`.",
  "acme.key-type": "Leave `keyType` out, or use a policy whose ciphers take it.",
  "acme.unknown-name": "Name one of the names of `portico certificates`.",
  "acme.not-issued": "See what the authority says, in the message.",
  "acme.no-http-listener": "Add an http listener on port 80, or use the challenge `tls-alpn-01`.",
  "host.bad-ipv4": "Give the host's static IPv4 address in dotted form.",
  "host.bad-ipv6": "Give a permanent IPv6 address of global scope, or none.",
  "host.bad-network": "Give an address, netmask and gateway of one subnet.",
  "host.bad-nameserver": "Give the IP addresses of DNS servers.",
  "host.bad-dhcp-range": "Give the first and the last address of the router's DHCP range.",
  "host.inside-dhcp-range": "Choose an address outside the router's DHCP range.",
  "host.bad-name": "Give a domain name, or leave it out to use the IPv4 address.",
  "host.ipv6-only": "Give a static IPv4 address as well: IPv6-only hosts are not supported.",
  "host.bad-root": "Give `/`, an absolute path, or a folder relative to the project.",
  "host.no-systemd": "Deploy to a host that systemd has booted.",
  "host.old-systemd": "Deploy to Debian 12, Ubuntu 22.04 or later.",
  "host.other-processor":
    "Give `NodeRuntime.pinned` the host's `platform`: `linux-x64` for x86_64, `linux-arm64` for aarch64.",
  "host.bad-virtual-address": "Give a free IPv4 address of the network that both hosts are in.",
  "pair.no-ssh": "Give each host `delivery: Delivery.ssh({ … })`: the two exchange a secret over ssh.",
  "network.bad-interface": "Name one interface, or give its MAC address.",
  "network.bad-address": "Give what systemd-networkd needs for a static address.",
  "firewall.loopback-port": "Leave the port out: what listens there is reached through the proxy only.",
  "firewall.locks-out":
    "Add the port to `ports` or `allowed`, set the host's `sshPort` (`false` if there is no SSH server), or set `acceptLockOut: true`.",
  "unit.fastcgi-start": "Start the web application with `start`, not with `start-fastcgi`.",
  "unit.no-access": "Choose a place that the service can reach.",
  "unit.bad-value": "Give an allowed value, without control characters.",
  "unit.missing-command": "Give the unit a command to start.",
  "unit.secret-in-environment":
    "Put the secret into a file that only root can read, and name it as `environmentFile`.",
  "settings.bad-value": "Give a value without quotes, backslashes or control characters.",
  "settings.bad-syntax": "Fix the line; nothing was changed.",
  "settings.wrong-kind": "Give the path of a file of the kind that the deployment lists.",
  "settings.refused":
    "Set the item once, in a separate, plain assignment at the top level, after everything else that may set it.",
  "settings.changed-meanwhile": "Try again.",
  "settings.write-failed": "See the system error in the message.",
  "settings.not-deployed": "Deploy application settings, or name a deployment that has them.",
  "files.unreadable": "Create the file, or let the user that runs portico read it.",
  "files.not-a-log": "Give an access log in nginx's `combined` format, or in Portico's JSON.",
  "files.no-request-ids":
    'Set `logs.access` to { "path": "/var/log/portico/access.log", "format": "json" }, and `requestId` to {}.',
  "files.request-not-found": "Check the id, or give an older log: --log FILE.",
  "files.duplicate-path":
    "Give one of the files another path. A host has one front end: give its `proxy` the virtual servers of both, or deliver the second to another host.",
  "files.foreign-owner": "Give the file and its directory to the same user.",
  "files.shared-directory": "Give the directory to the application's user, or let only root change it.",
  "files.no-response": "See the reason in the message, for example a file system that hangs.",
  "files.bad-key": "Give an unencrypted PEM private key.",
  "files.bad-certificate": "Give a PEM certificate, the server's own first.",
  "files.bad-dhparam": "Give PEM DH parameters of at least 2048 bits.",
  "files.bad-ticket-secret": "Make a new secret: openssl rand -base64 48",
  "files.bad-notification-secret": "Put the URL, or the token, alone into the file, in one line.",
  "files.key-mismatch": "Use the key that belongs to the certificate.",
  "files.certificate-expired": "Renew the certificate.",
  "files.certificate-expires-soon": "Renew the certificate, then run `systemctl reload portico`.",
  "files.certificate-not-yet-valid": "Correct the host's clock, or use a certificate that is valid now.",
  "files.name-not-covered":
    "Use a certificate with the name among its subject alternative names, or remove the name from the config.",
  "files.certificate-not-chosen":
    "Remove the certificate, or put it before the one that has the name; the default certificate is the first.",
  "files.key-exposed": "Let only the owner read the file.",
  "files.bad-directory":
    "Create the directory, or give the user that runs portico read and execute permission on it.",
  "files.log-not-writable": "Create the log directory, or let the user that runs portico write to it.",
  "container.no-host": "Give a container its files by its image, a volume or a Secret.",
  "kubernetes.acme": "Have cert-manager write a Secret, and take `TlsMaterial.fromSecret()`.",
  "kubernetes.bad-address": "Listen on 0.0.0.0: the address of a pod is known only when it starts.",
  "kubernetes.bad-name": "Give a name that Kubernetes accepts.",
  "kubernetes.bad-value": "Give a value that Kubernetes accepts.",
  "kubernetes.changed-later": "Make the KubernetesFrontEnd after everything has been added to its proxy.",
  "kubernetes.client-address": "Leave `externalTrafficPolicy` out, or give every listener `proxyProtocol`.",
  "kubernetes.loopback-upstream": "Name a Service: http://NAME.NAMESPACE.svc:PORT.",
  "kubernetes.not-known": "Give a literal.",
  "kubernetes.no-volume": "Mount a volume or a Secret there.",
  "kubernetes.privileged-port": "Listen on a port above 1023, and give `publishedPort`.",
  "kubernetes.shared-proxy":
    "Give each KubernetesFrontEnd a separate proxy, or all of them the same `resources` and `ticketKeys`.",
  "kubernetes.short-grace": "Give a longer `transferGrace`, or the proxy a shorter `timeouts.drainMs`.",
  "tls.unverified-upstream":
    "Give the root certificate of its authority, or the certificate that signed itself, as `caFile`, and remove `verify: false`.",
  "tls.bad-policy": "Give protocols, ciphers and curves that this OpenSSL knows.",
  "listen.address-in-use": "Stop what listens there, or choose another port.",
  "listen.permission-denied": "Let systemd pass the socket, run as root, or choose port 1024 or above.",
  "listen.address-not-available": "Give the host that address, or listen on one it has.",
  "listen.failed": "See the system error in the message.",
  "listen.unused-socket": "Give the config a listener for the socket, or remove it from the socket unit.",
  "serve.worker-failed": "See what the worker wrote to standard error and the error log.",
  "serve.stopping": "Start portico again.",
  "serve.upgrade-failed": "See what the new master wrote to standard error and the error log.",
  "control.bad-request": "Use the `portico` command of the release that is running.",
  "control.not-running": "Start portico, or name the socket of the running portico with `--control`.",
  "control.no-response":
    "Check whether portico is running, and what it wrote to standard error and the error log.",
  "control.unknown-server": "Give a name and a URL as `portico upstreams` has them.",
  "control.quiesced":
    "Wait until the other command has ended; `portico maintenance status` shows since when it runs.",
  "control.not-quiesced": "Run the command again.",
  "control.not-kept": "Make room in that directory, and give the command again.",
  "control.no-notifications": "Give the config `notifications`, and reload.",
  "control.not-notified":
    "Correct what the message names, in the config or at the target; `portico notify --test` tries again.",
  "control.replaced": "Ask again: the new master answers.",
  "activation.busy": "Wait until the other activation has ended, then try again.",
  "activation.not-root": "Run it as root.",
  "activation.no-systemd": "Run it on a host that systemd has booted, or with `--root` for files only.",
  "activation.missing-blob":
    "Have everything sent again: `terraform apply -replace=ADDRESS` of the resource that ends in `Host_Staging`.",
  "activation.corrupt-blob":
    "Have everything sent again: `terraform apply -replace=ADDRESS` of the resource that ends in `Host_Staging`.",
  "activation.bad-target": "Move away what is at the path, or deploy the file to another path.",
  "activation.bad-unit": "Fix the unit as systemd says.",
  "activation.unknown-unit": "Install the daemon, deploy its unit, or leave it out of the deployment.",
  "activation.locked-out": "Open the port that your session uses, or deploy without the firewall.",
  "activation.masked-unit": "Run `systemctl unmask UNIT`, or leave the unit out of the deployment.",
  "activation.no-ipv6":
    "Turn IPv6 on (`sysctl net.ipv6.conf.all.disable_ipv6=0`), or leave the host's `ipv6Address` out.",
  "activation.port-in-use":
    "Stop what listens there (`systemctl disable --now UNIT`), or give the listener another port.",
  "activation.no-room": "Free space on the file system of the path.",
  "activation.file-failed": "See the system error in the message.",
  "activation.command-failed": "See what the command said, in the message.",
  "activation.unexpected-response": "See the cause in the message.",
  "activation.no-certificate":
    "See why in the message; without `requireCertificate` the proxy serves with a temporary certificate meanwhile.",
  "activation.interrupted": "Activate again.",
  "activation.not-restored": "Follow the message: the host is between two states.",
  "activation.replay-changes":
    "See the examples above. If the change is meant, raise `changesMax` of `replay`, or leave `replay` out, for one apply.",
  "activation.not-replayed": "Give `replay` a log that is there, or leave it out.",
  "activation.damaged-store":
    "Remove the file named and activate again; what was on the host before is then no longer known.",
  "activation.other-deployment":
    "Deliver to another host. If the construct or its stack was renamed or moved, if Terraform's state was lost, or to replace the other deployment: set `takeOver: true` in the delivery for one apply.",
  "activation.changed-since":
    "To restore the item's previous value, change it by hand; the message says what it was.",
  "delivery.bad-connection": "Give what Terraform needs to log in over ssh.",
  "delivery.unverified-host":
    "Give the server's public key as `hostKey` (`ssh-keyscan -t ecdsa ADDRESS` prints it; compare it with the server's own), or set `verifyHostKey: false`.",
  "delivery.clear-text-key":
    "Give `privateKeyFile`, or take the key from a sensitive variable, so that the synthesized stack does not hold it.",
  "delivery.key-at-destroy":
    "Use `privateKeyFile` or an agent, let state keep the key (`privateKeyInState`), or let the host keep the deployment (`whenDestroyed`).",
  "delivery.open-script-path":
    "Leave `scriptPath` out, or make a directory that only the user who logs in can enter (mode 0700).",
  "delivery.no-activation":
    'Add `new Activation(this, "activation", { service })` with the host\'s `ProxyService`, which makes files, units and services take effect together.',
  "delivery.second-activation":
    "A host has one `Activation`, for one proxy: give that the virtual servers of both, or take another host.",
  "delivery.no-root":
    "Log in as root, or as a user who may use sudo without a password (`NOPASSWD`), with `sudo: true`.",
  "delivery.other-stack": "Define the host and what is delivered to it in one stack.",
  "node.bad-pin": "Give the version, and the hash that `npm view` prints for its package.",
  "node.wrong-hash": "Compare with what `npm view` prints; do not deploy a binary that differs.",
  "node.not-fetched": "See what npm said, or give a binary by `NodeRuntime.fromFile`.",
} as const;

/** A code of {@link PROBLEM_CODES}. */
export type ProblemCode = keyof typeof PROBLEM_CODES;

/** Builds a problem; `fix` defaults to the code's general advice. */
export function problem(
  code: ProblemCode,
  path: string,
  message: string,
  more: { received?: unknown; allowed?: string; fix?: string } = {},
): Problem {
  const received = more.received === undefined ? undefined : show(more.received);
  return {
    code,
    path,
    message,
    ...(received === undefined ? {} : { received }),
    ...(more.allowed === undefined ? {} : { allowed: more.allowed }),
    fix: more.fix ?? PROBLEM_CODES[code],
  };
}

/** The page of the package that explains every code, each under a heading of its own. */
const ERRORS_PAGE = "cdktf-portico/docs/errors.md";

/** Where a problem is, unless it concerns the whole document, then what is wrong, and its code. */
export function problemTitle({ path, message, code }: Problem): string {
  return `${path === "" ? "" : `${path}: `}${message} [${code}]`;
}

/** Several lines for a person: place and message, then received, allowed, fix, and where to read more, indented. */
export function formatProblem(p: Problem): string {
  const lines = [problemTitle(p)];
  if (p.received !== undefined) lines.push(`    received: ${p.received}`);
  if (p.allowed !== undefined) lines.push(`    allowed:  ${p.allowed}`);
  lines.push(`    fix:      ${p.fix}`);
  // The anchor of a heading is its text without dots.
  lines.push(`    see:      ${ERRORS_PAGE}#${p.code.replace(".", "")}`);
  return lines.join("\n");
}

/** Thrown where bad input cannot be returned: by constructors of the public API. */
export class ProblemError extends Error {
  /** Every problem that was found. */
  declare readonly problems: readonly Problem[];

  constructor(problems: readonly Problem[]) {
    // Several places may see one mistake.
    const byText = new Map(problems.map((one) => [formatProblem(one), one]));
    super([...byText.keys()].join("\n"));
    this.name = "ProblemError";
    // Node prints what is enumerable after the message of an uncaught error, which says it all already.
    Object.defineProperty(this, "problems", { value: [...byText.values()] });
  }
}

const SHOWN_MAX = 120;

/** What is not plain data, such as a construct, is named: it would be shown with all that it holds, and may hold itself. */
function plainly(_key: string, value: unknown): unknown {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return value;
  const prototype = Object.getPrototypeOf(value) as { constructor: { name: string } } | null;
  const name = prototype?.constructor.name ?? "";
  return name === "" || name === "Object" ? value : `an instance of ${name}`;
}

function show(value: unknown): string {
  if (typeof value === "function") return "a function";
  // JSON has neither NaN nor big integers.
  const json =
    typeof value === "number" || typeof value === "bigint" ? undefined : JSON.stringify(value, plainly);
  const text = json ?? String(value);
  return text.length > SHOWN_MAX ? `${text.slice(0, SHOWN_MAX)}…` : text;
}
