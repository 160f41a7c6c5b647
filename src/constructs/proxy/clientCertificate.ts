import type { clientCertificate } from "../../model/config/clientCertificate.js";
import type { InputOf } from "../../model/schema/inferred.js";

/** Certificates that clients need. Its files are on the host. See docs/client-certificates.md. */
export interface ClientCertificate extends InputOf<typeof clientCertificate> {}
