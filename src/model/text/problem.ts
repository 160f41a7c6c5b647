/**
 * A finding about a configuration: its place, the value that was received, the values that are allowed, and a fix.
 *
 * Parsing collects problems and never throws; the caller decides whether a problem is fatal.
 */
export interface Problem {
  /** Stable code, a key of {@link PROBLEM_CODES}; scripts may compare it. */
  readonly code: ProblemCode;
  /** Field path (`listeners[0].port`), construct path or file path; empty for the whole document. */
  readonly path: string;
  /** The fault, in one sentence without a full stop. */
  readonly message: string;
  /** The value that was received, shortened; absent if no value was received. */
  readonly received?: string;
  /** The values that are accepted. */
  readonly allowed?: string;
  /** How to fix the problem. */
  readonly fix: string;
}

/** A value, or all problems that prevent the value. */
export type Result<T> =
  | { readonly ok: true; readonly value: T }
  | { readonly ok: false; readonly problems: readonly Problem[] };

/**
 * Every code of a problem, with the general fix. `docs/errors.md` explains each code with an example; a test checks
 * that both list the same codes.
 */
export const PROBLEM_CODES = {
  "config.not-json": "Correct the syntax at the line and column that the message names.",
  "config.repeated-field": "Remove all but one of these fields.",
  "config.unsupported-version": "Use a `version` that this release reads, or upgrade portico.",
  "config.missing-field": "Add the field.",
  "config.unknown-field": "Remove the field or correct its spelling.",
  "config.wrong-type": "Use a value of the allowed type.",
  "config.out-of-range": "Use a value in the allowed range.",
  "config.not-one-of": "Use one of the allowed values.",
  "config.bad-name": "Use a name of the allowed form.",
  "config.bad-address":
    "Use an IP address (or a range, where one is allowed) of the allowed form; host names are not accepted.",
  "config.bad-server-name":
    "Use a host name or an IP address in lower case, without scheme, port or brackets.",
  "config.bad-url":
    "Use `http://HOST:PORT` or `https://HOST:PORT` in lower case, without a user and with nothing after the port; or `unix:/PATH` for a Unix socket.",
  "config.bad-file-path": "Use an absolute path of the allowed form.",
  "config.bad-route-path": "Begin the path with `/`, and use only the allowed segments and characters.",
  "config.bad-header": "Use a field name and a field value of the allowed form.",
  "config.reserved-response-field": "Remove the entry: the application or the proxy sets this field.",
  "config.duplicate-response-field": "Keep one of the two settings of the field.",
  "config.bad-error-page": "Correct the fault that the message names.",
  "config.duplicate-error-page": "List each status for one page only.",
  "config.hsts-without-tls": "Remove `hsts`, or add an https listener to the virtual server.",
  "config.hsts-preload":
    "Set `includeSubDomains: true` and a `maxAge` of at least 31536000, or remove `preload`.",
  "config.hsts-self-signed":
    "Use a certificate that browsers trust. If every client trusts this one, set `force: true`.",
  "config.guard-of-one-client":
    "Set `trustedProxies` to the address of the proxy in front, or remove `passwordGuard`.",
  "config.guard-without-log-in": "Set `logIns`, by an application that has them, or remove `passwordGuard`.",
  "config.useless-limit": "Remove the limit, or set it on the route that leads to the application.",
  "config.limit-stops-uploads":
    "Raise the limit. On a route that takes no uploads, such as a login, set `requestBodyBytesMax` to at most 1048576.",
  "config.access-without-rule":
    "Add `allow`, `deny`, `denyFile`, `basic` or `forwardAuth`, or remove the policy.",
  "config.two-log-ins": "Keep one of `basic` and `forwardAuth`.",
  "config.password-without-tls":
    "Serve the route over TLS only. If something in front of Portico ends TLS, name it in `trustedProxies`, or listen on a private address.",
  "config.client-certificate-without-tls":
    "Remove the http listener from the virtual server; a virtual server of its own can redirect http to https.",
  "config.everyone-allowed": "List the addresses of the administrators only.",
  "config.everyone-trusted":
    "List the addresses of the proxies in front of this one. If only these proxies can connect, set `trustEveryone: true`.",
  "config.private-directory": "Serve a directory that contains only files that every client may read.",
  "config.bad-cipher-string":
    "Use an OpenSSL cipher string: names joined by `:`, such as `ECDHE+AESGCM:DHE+AESGCM`.",
  "config.bad-redirect-path":
    "Begin the path with `/`, without scheme and host, and percent-encode other characters (`%20` for a space).",
  "config.bad-rewrite":
    "Begin the path with `/`, without a query, and percent-encode other characters (`%20` for a space).",
  "config.placeholder":
    "Write the value itself. `forwarded` and `hostHeader` of `Action.proxy` send what depends on the client; a redirect without `path` keeps path and query.",
  "config.bad-text": "Use a text of the allowed form.",
  "config.duplicate-name": "Use a different name for each item of the same kind.",
  "config.duplicate-id": "Choose another id.",
  "config.missing-package": "Install the package.",
  "config.unknown-reference": "Use one of the defined names, or define the missing item.",
  "config.duplicate-listener": "Keep only one listener for each address and port.",
  "config.port-conflict":
    "A listener on a wildcard address takes the port on every address: keep that listener, or keep the listeners on single addresses.",
  "config.public-health-listener":
    "Use 127.0.0.1 or a private address of the host. In a container, use `0.0.0.0` with `anyAddress: true`.",
  "config.notification-url":
    "Set either `url` (`https`, without user, query and fragment) or `urlFile` (for a URL that is a secret or has a query).",
  "config.public-metrics-listener":
    "Use 127.0.0.1, a private address of the host or a Unix socket, or list the clients that may connect in `allow`.",
  "config.tls-missing":
    "Add a `tls` section to the https listener, with `certificate` and `key`, or with `acme`.",
  "config.tls-unexpected": "Remove `tls`, or use `https` for the listener or the upstream's URL.",
  "config.certificate-source":
    "Set `certificate` and `key` for a certificate from files, or `acme` for a certificate that the proxy requests from an authority.",
  "config.duplicate-server-name": "List each server name once per listener.",
  "config.duplicate-default-server": "Set `default: true` on only one virtual server of each listener.",
  "config.no-default-server":
    "Set `default: true` on the virtual server that serves requests for unknown names.",
  "config.duplicate-route": "Keep one of the two routes, or change the path or `match` of one.",
  "config.shadowed-route": "Remove the route that can never match, or change one of the paths.",
  "config.redirect-loop": "Redirect to a scheme, port, host or path that does not redirect back.",
  "config.body-not-allowed": "Remove the body, or use another status.",
  "config.proxy-loop": "Use the URL of the application, not of a listener of this proxy.",
  "config.bad-servers": "List each server once, and at least one server without `backup`.",
  "config.used-once": "Remove the field, or remove `proxyProtocol`.",
  "config.bad-cookie":
    "Use a cookie name of letters, digits, `-` and `_`, and for a cookie of the application `applicationCookie`.",
  "config.two-log-formats": "Use one format for the file, or a file for each format.",
  "config.no-webdav-route": "Add a route to the WebDAV server, or remove `windowsDrives`.",
  "config.no-trusted-proxies":
    "List the proxies that send the field in `trustedProxies`, or remove this setting: the proxy accepts the field from no other sender.",
  "config.announced-and-trusted":
    "Remove the address from `trustedProxies`: the PROXY protocol header already names the client.",
  "config.ipv6-only": "Add an IPv4 listener: IPv6-only hosts are not supported.",
  "acme.bad-directory":
    "Use the `https` URL that the authority documents as its ACME directory, or the `https` URL of the acme-dns server.",
  "acme.bad-name":
    "Use a lower-case host name, `*.` and a host name, or an IP address. For a zone or a DNS record, use a domain name without `*`.",
  "acme.bad-email": "Use one mail address.",
  "acme.terms-not-agreed":
    "Read the authority's terms of service, and set `agreeToTerms: true` if you agree.",
  "acme.private-name":
    "Use a name of the public DNS, use a private authority and set its `roots`, or use a self-signed certificate.",
  "acme.wildcard-challenge":
    "Add `dns` to the authority, in a stack to `TlsMaterial.acme`, and remove `challenge` or set it to `dns-01`: only a DNS record proves a wildcard name. Or use a certificate from files.",
  "acme.address-challenge":
    "Use a second authority with the challenge `http-01` or `tls-alpn-01` for the address, or remove the address.",
  "acme.dns-missing": "Add `dns`, which says how the DNS records are written.",
  "acme.outside-zone":
    "Set `zone` to the zone that contains the record. If a CNAME record leads to another zone, set `alias` to the target of the CNAME record.",
  "acme.key-type": "Remove `keyType`, or use a policy whose ciphers allow this type of key.",
  "acme.unknown-name": "Use a name that `portico certificates` lists.",
  "acme.not-issued": "Resolve the authority's reason, which the message gives.",
  "acme.no-http-listener":
    "Add an http listener on port 80 (a front end has one unless `httpPort` is `false`), or use the challenge `tls-alpn-01` or `dns-01`.",
  "host.bad-ipv4": "Use the host's static IPv4 address in dotted decimal form.",
  "host.bad-ipv6": "Use a permanent global IPv6 address, or leave `ipv6Address` out.",
  "host.bad-network": "Use an address, a netmask and a gateway that belong to one subnet.",
  "host.bad-nameserver": "Use the IP addresses of DNS servers.",
  "host.bad-dhcp-range": "Set `from` and `to` to the first and the last address of the router's DHCP range.",
  "host.inside-dhcp-range": "Choose an address outside the router's DHCP range.",
  "host.bad-name": "Use a lower-case domain name, or leave the field out.",
  "host.ipv6-only":
    "Set `address` to a static IPv4 address; an IPv6 address goes into `ipv6Address`. IPv6-only hosts are not supported.",
  "host.bad-root": "Use `/`, an absolute path, or a path relative to the project.",
  "host.no-systemd": "Deploy to a host that systemd has booted.",
  "host.old-systemd": "Deploy to Debian 12 or Ubuntu 22.04, or to a later release.",
  "host.other-processor":
    "Set `platform` of `NodeRuntime.pinned` to the host's platform: `linux-x64` for x86_64, `linux-arm64` for aarch64.",
  "host.no-program": "Install the package that contains the program.",
  "host.bad-virtual-address": "Use a free IPv4 address of the network that both hosts are in.",
  "pair.no-ssh":
    "Set `delivery: Delivery.ssh({ … })` for each host: the two hosts exchange a secret over ssh.",
  "network.bad-interface": "Set either the name or the MAC address of one interface.",
  "network.bad-address": "Set an allowed value: systemd-networkd needs it for the static address.",
  "firewall.loopback-port":
    "Remove the port: only programs on the host itself, such as the proxy, may connect to it.",
  "firewall.no-effect":
    "Remove the entry. Or leave only one entry for the port, with all ranges, and remove the port from `ports` (a front end does so).",
  "firewall.locks-out":
    "Add the port to `ports` or `allowed`, set the host's `sshPort` (`false` if there is no SSH server), or set `acceptLockOut: true`.",
  "bans.no-effect": "Remove the option: it would ban nobody, or the wrong address.",
  "bans.unreadable-log": "Log to a file in the form that the message names.",
  "unit.fastcgi-start": "Start the application with `start`, not with `start-fastcgi`.",
  "unit.no-access": "Choose a path that the service can access.",
  "unit.bad-value": "Use an allowed value, without control characters.",
  "unit.missing-command": "Set the command of the unit: a program by its absolute path, then its arguments.",
  "unit.secret-in-environment":
    "Write the secret into a file that only root can read, and set `environmentFile` to its path.",
  "settings.bad-value": "Use a value of the allowed form.",
  "settings.bad-syntax": "Correct the syntax of the line. Nothing was changed.",
  "settings.wrong-kind": "Use the path of a file of the kind that the deployment lists.",
  "settings.refused":
    "Change the line, so that every program that reads the file finds one value of the item.",
  "settings.changed-meanwhile": "Try again.",
  "settings.write-failed": "Resolve the system error, which the message gives.",
  "settings.not-deployed": "Deploy application settings, or use the document of a deployment that has them.",
  "files.bad-address-list": "Correct the line, or write the file again; a list is replaced as a whole.",
  "files.bad-users": "Correct the line, or write the file again; a file of users is replaced as a whole.",
  "files.unreadable": "Create the file, or let the user that runs portico read it.",
  "files.untrusted-path": "Put the file below a directory that only root can change, such as /etc/portico.",
  "files.not-a-file": "Use the path of a regular file.",
  "files.too-large": "Use a smaller file.",
  "files.not-a-log": "Use an access log in nginx's `combined` format, or in Portico's JSON format.",
  "files.no-request-ids":
    'Set `logs.access` to { "path": "/var/log/portico/access.log", "format": "json" }, and `requestId` to {}.',
  "files.request-not-found": "Check the id, or search an older log with `--log FILE`.",
  "files.duplicate-path":
    "Use another path for one of the files. If they belong to two front ends: a host has only one, so add the virtual servers of both to one proxy, or deliver the second front end to another host.",
  "files.foreign-owner": "Make the same user the owner of the file and of its directory.",
  "files.shared-directory":
    "Make the application's user the owner of the directory, or let only root change it.",
  "files.no-response": "Resolve the cause that the message names, such as a file system that hangs.",
  "files.bad-key": "Use an unencrypted private key in PEM form.",
  "files.bad-certificate": "Use certificates in PEM form, with the server's certificate first.",
  "files.bad-authority":
    "Use the certificates of the authorities in PEM form, each up to its root, as `openssl x509` writes them.",
  "files.bad-crl": "Make the list again: openssl ca -gencrl -out crl.pem",
  "files.crl-expired": "Make the list again, with a later end: openssl ca -gencrl -crldays 30 -out crl.pem",
  "files.crl-expires-soon":
    "Make the list again, with a later end: openssl ca -gencrl -crldays 30 -out crl.pem",
  "files.bad-dhparam": "Use DH parameters in PEM form, of at least 2048 bits.",
  "files.bad-ticket-secret": "Write a new secret into the file: openssl rand -base64 48",
  "files.bad-notification-secret": "Write only the URL, or only the token, into the file, on one line.",
  "files.key-mismatch": "Use the key that belongs to the certificate.",
  "files.certificate-expired": "Renew the certificate.",
  "files.certificate-expires-soon": "Renew the certificate, then run `systemctl reload portico`.",
  "files.certificate-not-yet-valid": "Correct the host's clock, or use a certificate that is valid now.",
  "files.name-not-covered":
    "Use a certificate with the name among its subject alternative names, or remove the name from the config.",
  "files.certificate-not-chosen":
    "Remove the certificate, or list it before the other certificate; the first certificate of a listener is the default.",
  "files.key-exposed": "Allow only the owner to read and write the file.",
  "files.bad-directory": "Create the directory, or let the user that runs portico read and enter it.",
  "files.log-not-writable": "Create the log directory, or let the user that runs portico write to it.",
  "container.no-host": "Provide the container's files in its image, on a volume or in a Secret.",
  "compose.loopback-upstream":
    "Use the name of the application's service: http://SERVICE:PORT. For a program on the host itself, use the host's address on the network.",
  "compose.no-volume":
    "Mount a directory that contains the path: `volumes` of `composeFiles`, such as `./media:/srv/media:ro`.",
  "kubernetes.acme":
    "Let cert-manager write the certificate into a Secret, and use `TlsMaterial.fromSecret()`.",
  "kubernetes.bad-address":
    "Use `0.0.0.0`, or `::` for IPv6: the address of a pod is known only when the pod starts.",
  "kubernetes.bad-name": "Use a name that Kubernetes accepts.",
  "kubernetes.bad-value": "Use a value that Kubernetes accepts.",
  "kubernetes.changed-later": "Create the KubernetesFrontEnd after everything has been added to its proxy.",
  "kubernetes.client-address": "Remove `externalTrafficPolicy`, or set `proxyProtocol` on every listener.",
  "kubernetes.loopback-upstream": "Use the URL of a Service: http://NAME.NAMESPACE.svc:PORT.",
  "kubernetes.not-known": "Use a literal.",
  "kubernetes.no-volume": "Mount a volume or a Secret that contains the path.",
  "kubernetes.privileged-port": "Use a port above 1023, and set `publishedPort`.",
  "kubernetes.shared-proxy":
    "Use a separate proxy for each KubernetesFrontEnd, or the same `resources` and `ticketKeys` for all of them.",
  "kubernetes.short-grace": "Set a longer `transferGrace`, or a shorter `timeouts.drainMs` of the proxy.",
  "tls.unverified-upstream":
    "Set `caFile` to the root certificate of the upstream's authority, or to the upstream's self-signed certificate, and remove `verify: false`.",
  "tls.bad-policy": "Use protocols, ciphers and curves that this OpenSSL supports.",
  "listen.address-in-use": "Stop the process that listens there, or choose another port.",
  "listen.permission-denied":
    "Let systemd pass the socket, run portico as root, or choose a port of 1024 or above.",
  "listen.address-not-available":
    "Assign the address to the host, or listen on an address that the host has.",
  "listen.failed": "Resolve the system error, which the message gives.",
  "listen.unused-socket":
    "Add a listener for the socket to the config, or remove the socket from the socket unit.",
  "serve.worker-failed": "Read what the worker wrote to standard error and to the error log.",
  "serve.stopping": "Start portico again.",
  "serve.upgrade-failed": "Read what the new master wrote to standard error and to the error log.",
  "control.bad-request": "Use the `portico` command of the release that is running.",
  "control.not-running": "Start portico, or set `--control` to the socket of the running portico.",
  "control.no-response":
    "Check whether portico is running, and what it wrote to standard error and the error log.",
  "control.unknown-server": "Use a name and a URL that `portico upstreams` lists.",
  "control.not-banned": "Use an address that `portico bans` lists.",
  "control.unknown-site": "Use the name of a site of this host.",
  "control.quiesced":
    "Wait until the other command has ended; `portico maintenance status` shows when it began.",
  "control.not-quiesced": "Run the command again.",
  "control.not-kept": "Resolve the error that the message gives, and run the command again.",
  "control.no-notifications": "Add `notifications` to the config, and reload portico.",
  "control.not-notified":
    "Resolve the reason that the message gives, in the config or at the target, and run `portico notify --test` again.",
  "control.replaced": "Run the command again: it will reach the new master.",
  "activation.busy": "Wait until the other activation has ended, then try again.",
  "activation.not-root": "Run the command as root.",
  "activation.no-systemd":
    "Run the command on a host that systemd has booted, or use `--root` to write files only.",
  "activation.missing-blob":
    "Send all files again: run `terraform apply -replace=ADDRESS` for the resource whose address ends in `Host_Staging`.",
  "activation.corrupt-blob":
    "Send all files again: run `terraform apply -replace=ADDRESS` for the resource whose address ends in `Host_Staging`.",
  "activation.bad-target": "Remove or rename the object at the path, or deploy the file to another path.",
  "activation.bad-unit": "Correct the unit; the message gives systemd's reason.",
  "activation.unknown-unit":
    "Install the package that contains the unit, deploy the unit, or remove its name from the deployment.",
  "activation.locked-out": "Open the port that your session uses, or deploy without the firewall.",
  "activation.masked-unit": "Run `systemctl unmask UNIT`, or leave the unit out of the deployment.",
  "activation.no-ipv6":
    "Enable IPv6 (`sysctl net.ipv6.conf.all.disable_ipv6=0`), or leave the host's `ipv6Address` out.",
  "activation.port-in-use":
    "Stop the service that listens there (`systemctl disable --now UNIT`), or use another port for the listener.",
  "activation.no-room": "Free space on the file system that contains the path.",
  "activation.file-failed": "Resolve the system error, which the message gives.",
  "activation.command-failed": "Resolve the command's error, which the message gives.",
  "activation.unexpected-response": "Check the program that should respond to the request, and its log.",
  "activation.no-certificate":
    "Resolve the reason that the message gives. Without `requireCertificate`, the proxy serves with a temporary certificate until the authority issues one.",
  "activation.interrupted": "Run the activation again.",
  "activation.not-restored": "Restore by hand what the message names: the host is between two states.",
  "activation.replay-changes":
    "Read the examples above. If the change is intended, raise `changesMax` of `replay`, or remove `replay`, for one apply.",
  "activation.not-replayed":
    "Set `accessLog` of `replay` to a log that contains requests, or remove `replay`.",
  "activation.damaged-store":
    "Remove the file and activate again. A destroy can then no longer restore the files from before the first activation.",
  "activation.other-deployment":
    "Deliver to another host. To replace the other deployment, or if the construct or its stack was renamed or moved, or if Terraform's state was lost: set `takeOver: true` in the delivery for one apply.",
  "activation.other-document":
    "Let one apply run at a time: use a backend of Terraform that locks the state. To bring this deployment into service, run `terraform apply` again.",
  "activation.not-removed":
    "Read the output above, and run `/var/lib/portico/deployment/command deactivate` on the host; then run `terraform destroy` again.",
  "activation.lost-program":
    "Send all files again: run `terraform apply -replace=ADDRESS` for the resource whose address ends in `Host_Staging`. If the deployment does not contain Node, install Node 20.19 or later at the path.",
  "activation.changed-since":
    "To restore the previous value, which the message gives, edit the file by hand.",
  "delivery.bad-connection": "Use an allowed value: Terraform needs it to log in over ssh.",
  "delivery.unverified-host":
    "Set `hostKey` to the server's public key (`ssh-keyscan -t ecdsa ADDRESS` prints it; compare it with the key on the server), or set `verifyHostKey: false`.",
  "delivery.clear-text-key":
    "Use `privateKeyFile`, or take the key from a sensitive variable: the synthesized stack must not contain the key.",
  "delivery.key-at-destroy":
    'Use `privateKeyFile` or an agent, keep the key in Terraform\'s state (`privateKeyInState: true`), or keep the deployment on the host (`whenDestroyed: "keep"`).',
  "delivery.open-script-path":
    "Remove `scriptPath`, or use a directory that only the login user can enter (mode 0700).",
  "delivery.no-room":
    "Free space on the file system that contains the path, and run `terraform apply` again.",
  "delivery.reinstalled-host":
    "Send everything again: run `terraform apply -replace=ADDRESS` for the resource whose address ends in `Host_Staging`.",
  "delivery.incomplete-upload":
    "If that file system is full, free space there. Then run `terraform apply` again: it sends the file again.",
  "delivery.no-activation":
    'Add `new Activation(this, "activation", { service })` with the host\'s `ProxyService`: it makes files, units and services take effect together.',
  "delivery.second-activation":
    "A host has one `Activation`, for one proxy: add the virtual servers of both to that proxy, or use another host.",
  "delivery.no-root":
    "Log in as root, or as a user who may use sudo without a password (`NOPASSWD`), with `sudo: true`.",
  "delivery.other-stack": "Define the host, and everything that is delivered to it, in one stack.",
  "node.bad-pin": "Set the version, and the hash that `npm view` prints for its package.",
  "node.wrong-hash":
    "Compare the hash with the output of `npm view`; do not deploy a binary with a different hash.",
  "node.not-fetched":
    "Resolve npm's error, which the message gives, or use `NodeRuntime.fromFile` with a binary on this machine.",
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
    received,
    allowed: more.allowed,
    fix: more.fix ?? PROBLEM_CODES[code],
  };
}

/** The page of the package that explains every code, each under its own heading. */
const ERRORS_PAGE = "cdktf-portico/docs/errors.md";

/** The path of a problem, unless it concerns the whole document, its message, and its code. */
export function problemTitle({ path, message, code }: Problem): string {
  return `${path === "" ? "" : `${path}: `}${message} [${code}]`;
}

/**
 * The problem as several lines for a person: place and message, then received, allowed, fix, and where to read more,
 * indented.
 */
export function formatProblem(p: Problem): string {
  const lines = [problemTitle(p)];
  if (p.received !== undefined) lines.push(`    received: ${p.received}`);
  if (p.allowed !== undefined) lines.push(`    allowed:  ${p.allowed}`);
  lines.push(`    fix:      ${p.fix}`);
  // The anchor of a heading is its text without dots.
  lines.push(`    see:      ${ERRORS_PAGE}#${p.code.replace(".", "")}`);
  return lines.join("\n");
}

/** Thrown by functions that cannot return problems: the constructors and methods of the public API. */
export class ProblemError extends Error {
  /** Every problem that was found. */
  declare readonly problems: readonly Problem[];

  constructor(problems: readonly Problem[]) {
    // Several places may see one mistake.
    const byText = new Map(problems.map((one) => [formatProblem(one), one]));
    super([...byText.keys()].join("\n"));
    this.name = "ProblemError";
    // Not enumerable: Node prints enumerable properties of an uncaught error, but the message already has all of it.
    Object.defineProperty(this, "problems", { value: [...byText.values()] });
  }
}

const SHOWN_MAX = 120;

/** A value that is not plain data, such as a construct, is shown by name: its content may be large and circular. */
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
