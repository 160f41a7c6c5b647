import type { LoadedConfig } from "./config.js";
import { sha256 } from "./sha256.js";

/** What a running master has loaded, by hashes, to be compared with what is installed. */
export interface LoadedState {
  /** Of the runtime's file, as it was when the master started. */
  readonly runtime: string;
  /** Of the config: what it says, not how it is written. */
  readonly config: string;
  /** Of the certificates and Diffie-Hellman parameters by listener; no key is a part of it. */
  readonly tls: string;
}

/** The part of {@link LoadedState} that depends on a config file and the files it names. */
export function loadedStateOf({ config, tls }: LoadedConfig): Pick<LoadedState, "config" | "tls"> {
  const shown = Object.entries(tls).map(([listener, { certificates, dhparam }]) => [
    listener,
    // What authorities issue is not installed by anyone.
    certificates.flatMap(({ source, cert }) => (source === "files" ? [cert] : [])),
    dhparam,
  ]);
  return { config: sha256(JSON.stringify(config)), tls: sha256(JSON.stringify(shown)) };
}
