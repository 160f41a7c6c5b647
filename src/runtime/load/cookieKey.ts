import { createHmac, randomBytes } from "node:crypto";
import { readFile } from "node:fs/promises";
import type { ProxyConfig } from "../../model/serving.js";

/**
 * The key of the cookies that bind clients to servers, if the config has such: the same after a restart, and on all hosts
 * and pods that share a secret. It is derived, so that what workers have gives nothing else away (machine-id(5) asks for
 * that, too).
 */
export async function cookieKey({ upstreams }: ProxyConfig, secret?: string): Promise<string | undefined> {
  if (!upstreams.some(({ sticky }) => sticky?.cookie !== undefined)) return undefined;
  const from = secret ?? (await readFile("/etc/machine-id", "utf8").catch(() => withoutMachine));
  return createHmac("sha256", from).update("portico: cookies that bind clients to servers").digest("base64");
}

/** A container's image has no id: its cookies end with it. */
const withoutMachine = randomBytes(32).toString("base64");
