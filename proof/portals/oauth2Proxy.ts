import { randomBytes } from "node:crypto";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { ROOT } from "../../build/paths.js";
import { runUnseen } from "../../testkit/unseen.js";
import { startProcess } from "../wire/processes.js";

const FOLDER = join(ROOT, ".cache/oauth2-proxy");

/** Builds it, unless it is there as the sources want it: a minute on two cores. */
export const buildOauth2Proxy = (): Promise<void> =>
  runUnseen(join(__dirname, "oauth2Proxy/build.sh"), [FOLDER]);

/** Sessions are renewed after this. */
export const REFRESH_MS = 3_000;

/** Starts it as docs/access.md says, with a provider at this URL. @returns a function that stops it */
export async function startOauth2Proxy(
  port: number,
  { issuer, domain }: { readonly issuer: string; readonly domain: string },
): Promise<() => Promise<void>> {
  if (!existsSync(join(FOLDER, "stamp")))
    throw new Error("oauth2-proxy is not built: `npx tsx proof/prepare.ts proof/portals/` does that");
  const options = {
    "http-address": `127.0.0.1:${port}`,
    "reverse-proxy": "true",
    "trusted-proxy-ip": "127.0.0.1",
    "set-xauthrequest": "true",
    upstream: "static://202",
    provider: "oidc",
    "oidc-issuer-url": issuer,
    "client-id": "portal",
    "client-secret": "secret of the portal",
    "email-domain": "*",
    "skip-provider-button": "true",
    "cookie-secret": randomBytes(16).toString("hex"),
    "cookie-domain": domain,
    "cookie-refresh": `${REFRESH_MS}ms`,
    "whitelist-domain": `${domain}:*`,
  };
  const args = Object.entries(options).map(([name, value]) => `--${name}=${value}`);
  const command = [join(FOLDER, "oauth2-proxy"), ...args];
  return (await startProcess({ command, ports: [port] })).stop;
}
