import { scryptSync } from "node:crypto";
import { writeFileSync } from "node:fs";
import path from "node:path";
import type { ProxyConfigInput, RouteInput } from "../../src/model/index.js";
import { hashText } from "../../src/model/serving.js";
import { applicationServers, type Setup } from "../lib/proxy.js";

/** A user that every request names. */
export const STEP_USER = { name: "ada", password: "correct horse" };

type Policy = NonNullable<ProxyConfigInput["accessPolicies"]>[string];
type Step = (setup: Setup) => {
  readonly policy?: Policy;
  readonly route?: Partial<RouteInput>;
  readonly isGuarded?: true;
};

/** Steps before a request's action, by the names of their rows. Nothing is refused. */
export const STEPS: Readonly<Record<string, Step>> = {
  "address list": () => ({ policy: { allow: ["127.0.0.0/8", "192.168.0.0/16"] } }),
  "rate limit": () => ({ route: { rateLimit: { requests: 1_000_000, perMs: 1_000, burst: 1_000_000 } } }),
  "password guard": () => ({ isGuarded: true }),
  "password, known": (setup) => ({ policy: { basic: { usersFile: usersFile(setup) } } }),
  portal: (setup) => ({
    policy: { forwardAuth: { url: `http://${applicationServers(setup)[0]}/sync/small` } },
  }),
};

/** The config with a step before each request of the application. */
export function withStep(config: ProxyConfigInput, setup: Setup): ProxyConfigInput {
  if (setup.step === undefined) return config;
  const { policy, route, isGuarded } = STEPS[setup.step]!(setup);
  const access = policy === undefined ? {} : { access: "step" };
  const guarded = isGuarded === true ? { passwordGuard: "step" } : {};
  return {
    ...config,
    ...(policy === undefined ? {} : { accessPolicies: { step: policy } }),
    // All clients are on this host, which a guard refuses unless a proxy may name them.
    ...(isGuarded === true ? { passwordGuards: { step: {} }, trustedProxies: ["127.0.0.1"] } : {}),
    virtualServers: config.virtualServers.map((server) =>
      server.name !== "application"
        ? server
        : {
            ...server,
            ...guarded,
            ...(isGuarded === true ? { logIns: LOG_INS } : {}),
            routes: server.routes.map((one) => ({ ...one, ...access, ...(one.name === "web" ? route : {}) })),
          },
    ),
  };
}

/** Each request has a password, and so is a log-in. */
const LOG_INS = [{ path: "/", match: "segment" as const, secret: "authorization" as const, failed: [401] }];

function usersFile({ folder }: Setup): string {
  const salt = Buffer.from("salt of 16 bytes");
  const hash = scryptSync(STEP_USER.password, salt, 32, { N: 2 ** 10, r: 8, p: 1 });
  const unpadded = (bytes: Buffer): string => bytes.toString("base64").replace(/=+$/, "");
  const text = hashText({ kind: "scrypt", ln: 10, r: 8, p: 1, salt: unpadded(salt), hash: unpadded(hash) });
  const file = path.join(folder, "users");
  writeFileSync(file, `${STEP_USER.name}:${text}\n`, { mode: 0o600 });
  return file;
}
