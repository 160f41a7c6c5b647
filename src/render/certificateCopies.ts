import { baseName } from "../model/host/credentialName.js";
import { CERTIFICATE_DIRECTORY, hardening } from "./proxyUnits.js";
import type { UnitDocument } from "./systemdUnit.js";

/** The side of one of two hosts that share certificates. */
export interface CertificateCopiesInput {
  readonly nodePath: string;
  readonly runtime: string;
  readonly config: string;
  /** The host's own address. */
  readonly address: string;
  /** The other host's. */
  readonly peer: string;
  /** TCP port of both. */
  readonly port: number;
  /** File with the secret that both have. */
  readonly keyFile: string;
}

/**
 * `portico-copies.service`: gives the other host the certificates that this one got, and takes newer ones. It runs as
 * the user of `portico.service`, whose files it reads and writes, but as a separate process: data of the other host is
 * not read where clients' keys and connections are.
 */
export function certificateCopiesUnit(input: CertificateCopiesInput): UnitDocument {
  const { nodePath, runtime, config, address, peer, port, keyFile } = input;
  const link = ["--own", address, "--peer", peer, "--port", String(port), "--key", keyFile];
  return {
    Unit: {
      Description: "Copies certificates between the hosts of the Portico front end",
      Wants: "network-online.target",
      After: "network-online.target",
      StartLimitIntervalSec: 0,
    },
    Service: {
      Type: "exec",
      LoadCredential: `${baseName(keyFile)}:${keyFile}`,
      ExecStart: { command: [nodePath, runtime, "certificates", "share", config, ...link] },
      // It ends when a deployment has replaced the runtime, or the key.
      Restart: "always",
      RestartSec: 2,
      ...CERTIFICATE_DIRECTORY,
      ...hardening([]),
      UMask: "0077",
      IPAddressDeny: "any",
      IPAddressAllow: [address, peer],
    },
    Install: { WantedBy: "multi-user.target" },
  };
}
