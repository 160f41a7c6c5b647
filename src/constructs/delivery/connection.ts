import { Fn, type SSHProvisionerConnection, Token } from "cdktf";
import { resolve } from "node:path";
import { SCRIPT_PATH } from "../../render/index.js";
import { choice, fields, flag, number, type PropTable, required, text } from "../props/propTable.js";
import { isKnown } from "../props/tokens.js";
import type { DeliveryHost } from "./way.js";

/** How to log in to a host; what Terraform's `connection` block takes, typed and checked. */
export interface SshLogin {
  /**
   * User name.
   * @default "root"
   */
  readonly user?: string;
  /**
   * Public key that the server must show, as its `/etc/ssh/ssh_host_*_key.pub` has it
   * (`ecdsa-sha2-nistp256 AAAA…`), or that of an authority that signed it. Terraform's client asks for ECDSA
   * first, then RSA, then Ed25519: give the first of these that the server has; `ssh-keyscan -t ecdsa ADDRESS`
   * prints it.
   * @default - none, which is refused unless `verifyHostKey` is `false` (`delivery.unverified-host`)
   */
  readonly hostKey?: string;
  /**
   * Whether the server has to show `hostKey`. `false` accepts any server at the address: anyone who can take
   * its place gets everything that is delivered, including private keys, and the login as well.
   * @default true
   */
  readonly verifyHostKey?: boolean;
  /**
   * File with the private key, on the machine that runs Terraform; `~` is its user's home, a relative path
   * starts where the app is synthesized. Read at every run, and not stored in the plan or in state.
   * @default - none; the agent's keys are used
   */
  readonly privateKeyFile?: string;
  /**
   * The private key itself, from a sensitive variable or another resource. A literal is refused
   * (`delivery.clear-text-key`), since it would be in the synthesized stack.
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

/** How files get to a host over ssh. */
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
   * Whether the user becomes root with `sudo`, without a password. Needed for any user but root
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
   * How long to try to connect, in seconds from 1 to 3600. A host that is being created needs some time until
   * it answers.
   * @default 300
   */
  readonly connectTimeoutSeconds?: number;
  /**
   * Absolute path on the host for Terraform's scripts, which run as this user with mode 0777: in a directory
   * that exists and that only the user can enter, such as `/opt/deploy/scripts/%RAND%.sh`. For users whose home
   * directory is missing or does not let programs run (`noexec`). A path below `/tmp` or another directory that
   * everyone can write to is refused (`delivery.open-script-path`), and a directory that others can enter fails
   * the apply.
   * @default - a random name in `~/.portico/incoming`, created with mode 0700
   */
  readonly scriptPath?: string;
  /**
   * Distinguishes this machine from another one at the same address, such as the id of a cloud instance. When
   * it changes, everything is delivered again; nothing is removed from the machine before, which may be gone.
   * @default - none
   */
  readonly machineId?: string;
  /**
   * Whether this deployment takes the place of another one that the host has (`activation.other-deployment`): that of
   * another stack, or of a construct that was renamed. For one apply; remove it afterwards. The other stack no longer
   * changes the host then, and destroying it leaves the host as it is.
   * @default false
   */
  readonly takeOver?: boolean;
  /**
   * What `terraform destroy` does to the host: `restore` runs `portico deactivate`, which restores what was
   * there before; `purge` removes the proxy's logs and its certificates by ACME as well; `keep` leaves everything as
   * it is, for a machine that is thrown away.
   * @default "restore"
   */
  readonly whenDestroyed?: "restore" | "purge" | "keep";
  /**
   * Whether state may hold a `privateKey`. To restore the host on destroy, Terraform can take the key only from
   * state; without this a `privateKey` is refused (`delivery.key-at-destroy`).
   * @default false
   */
  readonly privateKeyInState?: boolean;
}

/** Every field of a connection; `undefined` if it is not set. */
export type SshFields = Readonly<Record<string, string | number | undefined>>;

/** The options as plain values: what a resource's `input` keeps for its own destroy. Key files stay paths. */
export function sshFields(options: SshDeliveryOptions, host: DeliveryHost): SshFields {
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
