import { upstreamScheme } from "../authority.js";
import { type Problem, problem } from "../problem.js";
import type { ProxyConfig } from "./config.js";

/** Rules of TLS to upstreams. */
export function upstreamTlsProblems({ upstreams }: ProxyConfig): Problem[] {
  return upstreams.flatMap(({ url, tls }, i) => {
    if (tls === undefined) return [];
    const at = `upstreams[${i}].tls`;
    if (upstreamScheme(url) !== "https")
      return [
        problem("config.tls-unexpected", `upstreams[${i}].url`, "is without TLS, and there is `tls`", {
          received: url,
          allowed: "https://HOST:PORT",
          fix: "Give an `https` URL, or remove `tls`.",
        }),
      ];
    const { caFile, certificateFile, privateKeyFile, verify } = tls;
    const pair = { certificateFile, privateKeyFile };
    const lacking = Object.entries(pair).filter(([, file]) => file === undefined);
    return [
      ...(lacking.length !== 1
        ? []
        : [
            problem("config.missing-field", `${at}.${lacking[0]![0]}`, "is missing", {
              allowed: "the path of a file: a client certificate is `certificateFile` and `privateKeyFile`",
            }),
          ]),
      ...(verify || caFile === undefined
        ? []
        : [
            problem("config.tls-unexpected", `${at}.caFile`, "is not used with `verify: false`", {
              received: caFile,
              fix: "Remove `verify: false`: with `caFile` the upstream can prove who it is.",
            }),
          ]),
    ];
  });
}
