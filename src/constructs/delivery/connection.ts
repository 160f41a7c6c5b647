import { Fn, type SSHProvisionerConnection, Token } from "cdktf";
import { resolve } from "node:path";
import { SCRIPT_PATH } from "../../render/index.js";
import { choice, fields, flag, number, type PropTable, required, text } from "../props/propTable.js";
import { isKnown } from "../props/tokens.js";
import type { DeliveryHost, DeliveryOptions } from "./way.js";

/** Login to a host: the options of Terraform's `connection` block, typed and checked. */
export interface SshLogin {
  /**
   * User name.
   * @default "root"
   */
  readonly user?: string;
  /**
   * Public key of the server, as in `/etc/ssh/ssh_host_*_key.pub` (`ecdsa-sha2-nistp256 AAAA…`), or of an authority
   * that signed the server's key. Terraform's client prefers ECDSA, then RSA, then Ed25519: use the first of these
   * that the server has; `ssh-keyscan -t ecdsa ADDRESS` prints the key.
   * @default - none, which is refused unless `verifyHostKey` is `false` (`delivery.unverified-host`)
   */
  readonly hostKey?: string;
  /**
   * Whether the server must prove `hostKey`. `false` accepts any server at the address: an attacker in the server's
   * place receives everything that is delivered, including private keys, and the login.
   * @default true
   */
  readonly verifyHostKey?: boolean;
  /**
   * File with the private key, on the machine that runs Terraform. `~` is the home of the user who runs Terraform; a
   * relative path starts where the app is synthesized. Terraform reads the file at every run; neither plan nor state
   * stores the key.
   * @default - none; the agent's keys are used
   */
  readonly privateKeyFile?: string;
  /**
   * The private key itself, from a sensitive variable or another resource. A literal is refused
   * (`delivery.clear-text-key`), because the synthesized stack would contain the key.
   * @default - none
   */
  readonly privateKey?: string;
  /**
   * Certificate for the private key, signed by an authority that the server trusts.
   * @default - none
   */
  readonly certificate?: string;
}

/** A host between Terraform and the server. */
export interface SshBastion extends SshLogin {
  /** Name or address. */
  readonly address: string;
  /**
   * TCP port.
   * @default 22
   */
  readonly port?: number;
}

/** Options of a delivery over ssh. */
export interface SshDeliveryOptions extends SshLogin, DeliveryOptions {
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
   * Whether the user becomes root with `sudo`, without a password. Required for users other than root
   * (`delivery.bad-connection`).
   * @default false
   */
  readonly sudo?: boolean;
  /**
   * Whether the SSH agent's keys are used.
   * @default - true unless a private key is given
   */
  readonly agent?: boolean;
  /**
   * Host between Terraform and the server.
   * @default - none; a direct connection
   */
  readonly bastion?: SshBastion;
  /**
   * Time to retry the connection, in seconds from 1 to 3600, for a new host that does not respond at once.
   * @default 300
   */
  readonly connectTimeoutSeconds?: number;
  /**
   * Absolute path on the host for Terraform's scripts, which run as this user with mode 0777. The directory must
   * exist, and only the user may enter the directory: `/opt/deploy/scripts/%RAND%.sh`. For users without a home
   * directory, or with a home directory that does not allow programs (`noexec`). A path below `/tmp` or another
   * directory that everyone can write to is refused (`delivery.open-script-path`); a directory that others can enter
   * makes the apply fail.
   * @default - a random name in `~/.portico/incoming`, created with mode 0700
   */
  readonly scriptPath?: string;
  /**
   * Identifies this machine among machines at the same address, such as the id of a cloud instance. When the id
   * changes, everything is delivered again; nothing is removed from the previous machine, which may no longer exist.
   * @default - none
   */
  readonly machineId?: string;
  /**
   * Effect of `terraform destroy` on the host: `restore` runs `portico deactivate`, which restores the state before
   * the first deployment; `purge` also removes the proxy's logs and ACME certificates; `keep` changes nothing, for a
   * machine that is discarded.
   * @default "restore"
   */
  readonly whenDestroyed?: "restore" | "purge" | "keep";
  /**
   * Whether state may contain a `privateKey`. To restore the host on destroy, Terraform reads the key from state;
   * without this option a `privateKey` is refused (`delivery.key-at-destroy`).
   * @default false
   */
  readonly privateKeyInState?: boolean;
}

/** Every field of a connection; `undefined` if it is not set. */
export type SshFields = Readonly<Record<string, string | number | undefined>>;

/** The options as plain values, which a resource's `input` keeps for its own destroy. Key files stay paths. */
export function sshFields(
  options: SshDeliveryOptions,
  host: Pick<DeliveryHost, "address" | "sshPort">,
): SshFields {
  const { user = "root", bastion, connectTimeoutSeconds = 300 } = options;
  const hasKey = options.privateKey !== undefined || options.privateKeyFile !== undefined;
  return {
    host: options.address ?? host.address,
    port: options.port ?? host.sshPort ?? 22,
    user,
    timeout: `${connectTimeoutSeconds}s`,
    agent: String(options.agent ?? !hasKey),
    hostKey: withoutComment(options.hostKey),
    scriptPath: options.scriptPath ?? SCRIPT_PATH,
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

/** The same for OpenSSH's client, as variables of its environment; see `secretExchangeScript`. */
export function openSshVariables(fields: SshFields, prefix: string): Record<string, string> {
  const { timeout: _, scriptPath: __, ...login } = fields;
  const entries = Object.entries(login).filter(([, value]) => value !== undefined);
  return Object.fromEntries(
    entries.map(([name, value]) => [
      `${prefix}_${name.replace(/[A-Z]/g, (letter) => `_${letter}`).toUpperCase()}`,
      name.endsWith("KeyFile") ? Fn.pathexpand(String(value)) : Token.asString(value),
    ]),
  );
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

const SSH_LOGIN: PropTable<SshLogin> = {
  user: text,
  hostKey: text,
  verifyHostKey: flag,
  privateKeyFile: text,
  privateKey: text,
  certificate: text,
};

/** @internal */
export const SSH_DELIVERY_OPTIONS: PropTable<SshDeliveryOptions> = {
  ...SSH_LOGIN,
  address: text,
  port: number,
  sudo: flag,
  agent: flag,
  bastion: fields<SshBastion>({ ...SSH_LOGIN, address: required(text), port: number }),
  connectTimeoutSeconds: number,
  scriptPath: text,
  machineId: text,
  takeOver: flag,
  whenDestroyed: choice("restore", "purge", "keep"),
  privateKeyInState: flag,
};
