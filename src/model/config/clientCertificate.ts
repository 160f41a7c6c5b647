import * as z from "zod";
import { filePath, flag, requestFieldName, text } from "../schema/fields.js";

/** The rules for certificates of clients: one object of the config, and of the options of constructs. */
export const clientCertificate = z
  .strictObject({
    ca: filePath(
      "PEM file with the certificates of the authorities that sign the clients' certificates: each up to its root. " +
        "Portico reads it again when it changes. If it then has anything else, it is refused, and the previous " +
        "authorities stay in use.",
      "/etc/portico/clients-ca.pem",
    ),
    crl: filePath(
      "PEM file with revoked certificates (CRL, RFC 5280, 5): one list of each authority of `ca`. Portico reads it again " +
        "when it changes, also for connections that are open. After the `nextUpdate` of a list, no client of its " +
        "authority comes in. Without this field, no certificate is revoked.",
      "/etc/portico/clients-crl.pem",
    ).optional(),
    required: flag(
      true,
      "Whether a client needs a certificate. With `false`, clients without one come in, and the upstream gets none of the " +
        "fields; a certificate that is not valid is refused in any case.",
    ),
    names: z
      .array(
        text(
          "config.bad-text",
          "1 to 200 characters without control characters, and no blank at either end",
          {
            pattern: "^[!-~\\u00a1-\\uffff](?:[ -~\\u00a1-\\uffff]{0,198}[!-~\\u00a1-\\uffff])?$",
          },
        ).meta({ description: "A common name, mail address, DNS name or URI.", examples: ["alice"] }),
      )
      .min(1)
      .max(10_000)
      .optional()
      .meta({
        description:
          "Names of certificates that may come in: a common name of the subject, or an alternative name (mail address, DNS " +
          "name, URI), in the same case. Without this field, each certificate that the authorities have signed.",
        examples: [["alice", "bob@example.org"]],
      }),
    userField: requestFieldName(
      "Request field in which the upstream gets the certificate's name in UTF-8: the first that `names` has, else the " +
        "common name, else the first alternative name. A field that the proxy drops from every client's request, in each " +
        "spelling, such as `Remote-User`. Without this field, the upstream gets only `Client-Cert` and " +
        "`Client-Cert-Chain` (RFC 9440).",
      "Remote-User",
    ).optional(),
  })
  .describe(
    "Asks clients for a certificate in the TLS handshake (RFC 8446, 4.3.2). A request without a valid one gets 403, and a " +
      "request on a connection that was made for a virtual server with other authorities gets 421. Only on `https` " +
      "listeners.",
  );
