import { existsSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { ROOT } from "../../../build/paths.js";
import { runUnseen } from "../../../testkit/unseen.js";

/** Pebble, the authority of the tests, and the DNS server that it asks: how they are built and started. */

const PROGRAMS = join(ROOT, ".cache/pebble");
export const PEBBLE = join(PROGRAMS, "pebble");
export const DNS_SERVER = join(PROGRAMS, "pebble-challtestsrv");

/** Builds both, unless they are there and as the sources want them: up to a minute. */
export const buildPebble = (): Promise<void> => runUnseen(join(__dirname, "build.sh"), [PROGRAMS]);

/** For tests, whose time is too short to build it. */
export function requirePebble(): void {
  if (!existsSync(join(PROGRAMS, "stamp")))
    throw new Error(
      "Pebble is not built: `npm test -- proof/` does that first, or: `npx tsx proof/prepare.ts proof/`",
    );
}

/** Writes Pebble's config next to `roots.pem` and `key.pem`, the identity of its own server. @returns its path */
export function pebbleConfig(folder: string, more: Readonly<Record<string, unknown>>): string {
  const pebble = {
    certificate: join(folder, "roots.pem"),
    privateKey: join(folder, "key.pem"),
    domainBlocklist: ["blocked.example.net"],
    retryAfter: { authz: 1, order: 1 },
    keyAlgorithm: "ecdsa",
    profiles: PROFILES,
    ...more,
  };
  const file = join(folder, "pebble.json");
  writeFileSync(file, JSON.stringify({ pebble }));
  return file;
}

/** As Let's Encrypt has them: 90 days, and 6 for addresses. */
const PROFILES = {
  default: { description: "three months", validityPeriod: 7_776_000 },
  shortlived: { description: "six days", validityPeriod: 518_400 },
};

/** No pauses, and no responses that are wrong by chance. */
export const PEBBLE_ENVIRONMENT = {
  PEBBLE_VA_NOSLEEP: "1",
  PEBBLE_VA_ALWAYS_VALID: "0",
  PEBBLE_AUTHZREUSE: "0",
  PEBBLE_WFE_NONCEREJECT: "0",
  PEBBLE_WFE_ORDERS_PER_PAGE: "3",
};

/** Arguments of the DNS server by which it is nothing else, and knows no IPv6 address. */
export const SILENT = ["-http01", "", "-https01", "", "-tlsalpn01", "", "-doh", "", "-defaultIPv6", ""];
