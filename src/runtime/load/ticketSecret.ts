import { createHmac, randomBytes } from "node:crypto";
import { readFile } from "node:fs/promises";
import { type Problem, problem, type ProxyConfig, type TicketKeysConfig } from "../../model/serving.js";
import type { FindCredential } from "./credentials.js";
import { readSecret } from "./files.js";

/** The secret of shared ticket keys, as its file is now. */
export interface TicketSecretLoad {
  /** In base64. Never logged, never part of a message; undefined if there are problems. */
  readonly secret?: string;
  readonly problems: readonly Problem[];
  /** Warnings, with which the service still runs. */
  readonly warnings: readonly Problem[];
}

/** Reads the secret that a config names. */
export async function loadTicketSecret(
  { file }: Pick<TicketKeysConfig, "file">,
  find: FindCredential,
): Promise<TicketSecretLoad> {
  const { text, label, problems, warnings } = await readSecret(file, "ticketKeys.file", find);
  if (text === undefined) return { problems, warnings };
  // Base64 is written in lines.
  const secret = text.replace(/\s/g, "");
  const unfit = unfitness(secret);
  if (unfit !== undefined) {
    const allowed = `base64 text of at least ${SECRET_BYTES_MIN} bytes`;
    return { problems: [problem("files.bad-ticket-secret", label, unfit, { allowed })], warnings: [] };
  }
  return { secret, problems, warnings };
}

/** The reason why a secret is refused, without its content. */
function unfitness(secret: string): string | undefined {
  if (secret === "") return "is empty";
  const bytes = Buffer.from(secret, "base64");
  if (bytes.toString("base64") !== secret) return "is not base64 text";
  return bytes.length < SECRET_BYTES_MIN ? `has only ${bytes.length} bytes` : undefined;
}

/** The hash that keys are derived with puts out as many bytes. */
const SECRET_BYTES_MIN = 32;

/**
 * The key of the cookies that bind clients to servers, if the config has such: the same after a restart, and on all
 * hosts and pods that share a secret. It is derived, so that the workers' key reveals no other secret (machine-id(5)
 * asks for that, too).
 */
export async function cookieKey({ upstreams }: ProxyConfig, secret?: string): Promise<string | undefined> {
  if (!upstreams.some(({ sticky }) => sticky?.cookie !== undefined)) return undefined;
  const from = secret ?? (await readFile("/etc/machine-id", "utf8").catch(() => withoutMachine));
  return createHmac("sha256", from).update("portico: cookies that bind clients to servers").digest("base64");
}

/** A container's image has no id: its cookies end with it. */
const withoutMachine = randomBytes(32).toString("base64");
