import type { AccessLists, AccessUsers } from "../../model/serving.js";
import type { ClientAuthorities } from "../tls/clientCertificates.js";
import { type TlsRenewal, withRenewed } from "../tls/tlsContents.js";
import type { LoadedConfig } from "./loadConfig.js";

/** Contents of files that changed while the config that names them is in service. */
export interface Renewal extends TlsRenewal {
  /** Lists of access policies, by file. */
  readonly accessLists?: AccessLists;
  /** Users of access policies, by file. */
  readonly accessUsers?: AccessUsers;
  /** Authorities of clients, by `authorityKey`. */
  readonly clientAuthorities?: ClientAuthorities;
}

/** The loaded config with the renewed part replaced. */
export function renewed(loaded: LoadedConfig, renewal: Renewal): LoadedConfig {
  const { accessLists, accessUsers, clientAuthorities } = loaded;
  return {
    ...loaded,
    tls: withRenewed(loaded.tls, renewal),
    ...(accessLists === undefined ? {} : { accessLists: { ...accessLists, ...renewal.accessLists } }),
    ...(accessUsers === undefined ? {} : { accessUsers: { ...accessUsers, ...renewal.accessUsers } }),
    ...(clientAuthorities === undefined
      ? {}
      : { clientAuthorities: { ...clientAuthorities, ...renewal.clientAuthorities } }),
  };
}
