export type { CertificateContents, TlsContents, UpstreamTlsContents } from "./tls/tlsContents.js";
export type { ClientAuthorityContents } from "./tls/clientAuthority.js";
export type { ClientAuthorities } from "./tls/clientCertificates.js";
export type { AccessLists, AccessUsers, PackedAddresses, Users } from "../model/serving.js";
export { type LoadedConfig, type LoadedForMaster, loadConfig, type LoadOptions } from "./load/loadConfig.js";
export { serve, type ServeOptions } from "./supervisor/serve.js";
export { VERSION } from "../model/text/version.js";
export { runWorker } from "./worker/worker.js";
