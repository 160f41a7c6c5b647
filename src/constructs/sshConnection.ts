import { Fn, type SSHProvisionerConnection } from "cdktf";
import { resolve } from "node:path";
import { type Problem, problem } from "../model/index.js";
import type { Host } from "./host.js";
import { isKnown } from "./tokens.js";

/** How to log in to a host; what Terraform's `connection` block takes, typed and checked. */
export interface SshLogin {
  /**
   * User name.
   * @default "root"
   */
  readonly user?: string;
  /**
   * Public key that the server must show, as its `/etc/ssh/ssh_host_*_key.pub` has it (`ecdsa-sha2-nistp256 AAAA…`), or
   * that of an authority which has signed it. Terraform's client asks for ECDSA before RSA before Ed25519: give the
   * first of these that the server has. Without it any server is believed.
   * @default - the server is not verified
   */
  readonly hostKey?: string;
  /**
   * File with the private key, on the machine that runs Terraform; `~` is its user's home, a relative path is taken
   * from where the app is synthesized. Read at every run, and kept nowhere: neither in the plan nor in state.
   * @default - none; the agent's keys are used
   */
  readonly privateKeyFile?: string;
  /**
   * The private key itself, from a sensitive variable or another resource. A literal is refused
   * (`delivery.clear-text-key`), since it would stand in the synthesized stack.
   * @default - none
   */
  readonly privateKey?: string;
  /**
   * Certificate for the private key, signed by an authority that the server trusts.
   * @default - none
   */
  readonly certificate?: string;
}

/** A host that connections go through. */
export interface SshBastion extends SshLogin {
  /** Name or address. */
  readonly address: string;
  /**
   * TCP port.
   * @default 22
   */
  readonly port?: number;
}

export interface SshDeliveryOptions extends SshLogin {
  /**
   * Name or address to connect to.
   * @default - the host's IPv4 address
   */
  readonly address?: string;
  /**
   * TCP port.
   * @default - the host's `sshPort`
   */
  readonly port?: number;
  /**
   * Whether the user becomes root by `sudo`, without a password. Needed for any user but root
   * (`delivery.bad-connection`).
   * @default false
   */
  readonly sudo?: boolean;
  /**
   * Whether keys of the SSH agent are tried.
   * @default - true unless a private key is given
   */
  readonly agent?: boolean;
  /**
   * Host that connections go through.
   * @default - none; directly
   */
  readonly bastion?: SshBastion;
  /**
   * How long to try to connect, 1 to 3600. Seconds. A host that is being made needs some time until it answers.
   * @default 300
   */
  readonly connectTimeoutSeconds?: number;
  /**
   * Path on the host for Terraform's scripts, where `/tmp` does not let programs run.
   * @default - a random name in `/tmp`
   */
  readonly scriptPath?: string;
  /**
   * Tells this machine from another one at the same address, such as the id of a cloud instance. When it changes,
   * everything is delivered again.
   * @default - none
   */
  readonly machineId?: string;
  /**
   * What `terraform destroy` does to the host: `restore` runs `portico deactivate`, which puts back what was there
   * before; `purge` removes the proxy's logs as well; `keep` leaves everything as it is, for a machine that is thrown
   * away as a whole.
   * @default "restore"
   */
  readonly whenDestroyed?: "restore" | "purge" | "keep";
  /**
   * Whether state may hold a `privateKey`. Restoring the host on destroy takes it from there, since Terraform has
   * nothing else then; refused without (`delivery.key-at-destroy`).
   * @default false
   */
  readonly privateKeyInState?: boolean;
}

/** Every problem of the options, told by the name of the static method. */
export function sshProblems(options: SshDeliveryOptions): Problem[] {
  const at = (name: string): string => `Delivery.ssh.${name}`;
  const { user = "root", sudo = false, bastion, connectTimeoutSeconds: seconds, scriptPath } = options;
  const problems = loginProblems(options, at);
  if (isKnown(user) && user !== "root" && !sudo) {
    const fix = "Set `sudo: true` and let the user run sudo without a password, or log in as root.";
    problems.push(
      problem("delivery.bad-connection", at("user"), "cannot change a host", { received: user, fix }),
    );
  }
  if (bastion !== undefined) {
    problems.push(...loginProblems(bastion, (name) => at(`bastion.${name}`)));
    problems.push(...portProblems(bastion.port, at("bastion.port")));
    problems.push(...addressProblems(bastion.address, at("bastion.address")));
  }
  problems.push(
    ...portProblems(options.port, at("port")),
    ...addressProblems(options.address, at("address")),
  );
  if (isKnown(seconds) && seconds !== undefined && !isWithin(seconds, 1, 3600)) {
    const more = { received: seconds, allowed: "1 to 3600 seconds" };
    problems.push(problem("config.out-of-range", at("connectTimeoutSeconds"), "is out of range", more));
  }
  if (scriptPath !== undefined && isKnown(scriptPath) && !/^\/[\w./%-]+$/.test(scriptPath)) {
    const allowed = "an absolute path of letters, digits, `.`, `_`, `-` and `%RAND%`";
    problems.push(badConnection(at("scriptPath"), "is no path of a script", scriptPath, allowed));
  }
  return [...problems, ...destroyProblems(options, at)];
}

function loginProblems(login: SshLogin, at: (name: string) => string): Problem[] {
  const { user, hostKey, privateKey, privateKeyFile, certificate } = login;
  const problems: Problem[] = [];
  if (user !== undefined && isKnown(user) && !/^[A-Za-z_][\w.-]*\$?$/.test(user)) {
    problems.push(badConnection(at("user"), "is no user name", user, "letters, digits, `_`, `.` and `-`"));
  }
  if (hostKey !== undefined && isKnown(hostKey) && !PUBLIC_KEY.test(hostKey)) {
    const allowed = "type and key as in /etc/ssh/ssh_host_ecdsa_key.pub, without the host's name";
    problems.push(badConnection(at("hostKey"), "is no public key", hostKey, allowed));
  }
  if (privateKey !== undefined && privateKeyFile !== undefined) {
    const fix = "Give one of the two.";
    problems.push(problem("delivery.bad-connection", at("privateKey"), "stands beside a file", { fix }));
  }
  if (privateKey !== undefined && isKnown(privateKey)) {
    // The value is not shown: it may well be a key.
    problems.push(problem("delivery.clear-text-key", at("privateKey"), "is given as a literal"));
  }
  if (privateKeyFile === "") {
    problems.push(badConnection(at("privateKeyFile"), "is empty", "", "the path of a file"));
  }
  if (certificate !== undefined && privateKey === undefined && privateKeyFile === undefined) {
    const fix = "Give the private key that it certifies.";
    problems.push(problem("delivery.bad-connection", at("certificate"), "has no private key", { fix }));
  }
  return problems;
}

const PUBLIC_KEY = /^(?:ssh-|ecdsa-|sk-)[\w@.-]+ [A-Za-z0-9+/]+={0,2}(?: [^\n]*)?\n?$/;

function destroyProblems(options: SshDeliveryOptions, at: (name: string) => string): Problem[] {
  const { whenDestroyed = "restore", privateKeyInState = false, bastion } = options;
  if (whenDestroyed === "keep" || privateKeyInState) return [];
  const given = { privateKey: options.privateKey, "bastion.privateKey": bastion?.privateKey };
  return Object.entries(given).flatMap(([name, key]) =>
    key === undefined || isKnown(key)
      ? []
      : [problem("delivery.key-at-destroy", at(name), "is gone on destroy")],
  );
}

function portProblems(port: number | undefined, path: string): Problem[] {
  if (port === undefined || !isKnown(port) || isWithin(port, 1, 65_535)) return [];
  return [problem("config.out-of-range", path, "is no port", { received: port, allowed: "1 to 65535" })];
}

function addressProblems(address: string | undefined, path: string): Problem[] {
  if (address === undefined || !isKnown(address) || /^[A-Za-z0-9][A-Za-z0-9.:-]*$/.test(address)) return [];
  return [badConnection(path, "is no name or address", address, "a host name or an IP address")];
}

const isWithin = (value: number, from: number, to: number): boolean =>
  Number.isInteger(value) && value >= from && value <= to;

function badConnection(path: string, message: string, received: unknown, allowed: string): Problem {
  return problem("delivery.bad-connection", path, message, { received, allowed });
}

/** Everything that a connection is made with; `undefined` where there is nothing to say. */
export type SshFields = Readonly<Record<string, string | number | undefined>>;

/** The options as plain values: what a resource's `input` keeps for its own destroy. Key files stay paths. */
export function sshFields(options: SshDeliveryOptions, host: Host): SshFields {
  const { user = "root", bastion, connectTimeoutSeconds = 300 } = options;
  const hasKey = options.privateKey !== undefined || options.privateKeyFile !== undefined;
  return {
    host: options.address ?? host.address,
    port: options.port ?? host.sshPort ?? 22,
    user,
    timeout: `${connectTimeoutSeconds}s`,
    agent: String(options.agent ?? !hasKey),
    hostKey: withoutComment(options.hostKey),
    scriptPath: options.scriptPath,
    privateKey: options.privateKey,
    privateKeyFile: keyPath(options.privateKeyFile),
    certificate: options.certificate,
    ...(bastion === undefined
      ? {}
      : {
          bastionHost: bastion.address,
          bastionPort: bastion.port ?? 22,
          bastionUser: bastion.user ?? "root",
          bastionHostKey: withoutComment(bastion.hostKey),
          bastionPrivateKey: bastion.privateKey,
          bastionPrivateKeyFile: keyPath(bastion.privateKeyFile),
          bastionCertificate: bastion.certificate,
        }),
  };
}

function withoutComment(key: string | undefined): string | undefined {
  return key === undefined || !isKnown(key) ? key : key.trim().split(" ").slice(0, 2).join(" ");
}

function keyPath(path: string | undefined): string | undefined {
  return path === undefined || path.startsWith("~") || !isKnown(path) ? path : resolve(path);
}

/** The `connection` block of fields, which may be references as well: key files are read by Terraform. */
export function sshConnection(fields: SshFields): SSHProvisionerConnection {
  const { privateKeyFile, bastionPrivateKeyFile, ...plain } = fields;
  const read = (path: string | number): string => Fn.file(Fn.pathexpand(String(path)));
  return {
    type: "ssh",
    ...plain,
    ...(privateKeyFile === undefined ? {} : { privateKey: read(privateKeyFile) }),
    ...(bastionPrivateKeyFile === undefined ? {} : { bastionPrivateKey: read(bastionPrivateKeyFile) }),
  } as SSHProvisionerConnection;
}
