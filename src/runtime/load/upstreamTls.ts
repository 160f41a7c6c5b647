import {
  type Problem,
  problem,
  type ProxyConfig,
  serversOf,
  type UpstreamTlsConfig,
} from "../../model/serving.js";
import type { UpstreamTlsContents } from "../tls/tlsContents.js";
import { tried } from "../../model/net/openssl.js";
import { upstreamContext } from "../tls/tlsContexts.js";
import { readRoots } from "./authorityFiles.js";
import { loadCertificate } from "./certificate.js";
import type { FindCredential } from "./credentials.js";

/** The TLS files of upstreams, as they are now. */
export interface UpstreamTlsLoad {
  /** The files by upstream name; complete only if there are no problems. */
  readonly contents: Readonly<Record<string, UpstreamTlsContents>>;
  readonly problems: readonly Problem[];
  /** Warnings, with which the service still runs. */
  readonly warnings: readonly Problem[];
}

/** @param expiry whether a certificate outside its time is a problem or a warning */
export async function loadUpstreamTls(
  { upstreams }: ProxyConfig,
  expiry: "problem" | "warning",
  find: FindCredential,
): Promise<UpstreamTlsLoad> {
  const contents: Record<string, UpstreamTlsContents> = {};
  const problems: Problem[] = [];
  const warnings: Problem[] = [];
  for (const [i, upstream] of upstreams.entries()) {
    const { name, tls } = upstream;
    if (tls === undefined) continue;
    const at = `upstreams[${i}].tls`;
    if (!tls.verify) {
      const url = serversOf(upstream)
        .map((server) => server.url)
        .join(", ");
      const message = `is false: any server that responds at ${url} can read and change the requests and responses`;
      warnings.push(problem("tls.unverified-upstream", `${at}.verify`, message, { received: false }));
    }
    const one = await loadOne(tls, at, expiry, find);
    problems.push(...one.problems);
    warnings.push(...one.warnings);
    contents[name] = one.contents;
  }
  return { contents, problems, warnings };
}

async function loadOne(
  { caFile, certificateFile: certificate, privateKeyFile: key, verify }: UpstreamTlsConfig,
  at: string,
  expiry: "problem" | "warning",
  find: FindCredential,
): Promise<UpstreamTlsLoad & { readonly contents: UpstreamTlsContents }> {
  const roots = caFile === undefined ? undefined : ((await find(caFile)) ?? caFile);
  const read = roots === undefined ? undefined : await readRoots(roots, `${at}.caFile (${roots})`);
  const files = { at, certificate: certificate!, key: key!, fields: CLIENT_FIELDS };
  const client = key === undefined ? undefined : await loadCertificate(files, expiry, find);
  const problems = [...(read?.problems ?? []), ...(client?.problems ?? [])];
  const loaded = client?.loaded?.contents;
  const contents = {
    ...(read === undefined ? {} : { roots: read.text }),
    ...(loaded === undefined ? {} : { cert: loaded.cert, key: loaded.key }),
  };
  if (problems.length === 0) {
    // Reading the roots that Node brings takes long, and shows nothing.
    const made = tried(() => upstreamContext(contents, verify && roots !== undefined));
    const message = "refused" in made ? `is refused by OpenSSL: ${made.refused}` : undefined;
    if (message !== undefined) problems.push(problem("files.bad-certificate", at, message));
  }
  return { contents, problems, warnings: client?.warnings ?? [] };
}

const CLIENT_FIELDS = { certificate: "certificateFile", key: "privateKeyFile" };
