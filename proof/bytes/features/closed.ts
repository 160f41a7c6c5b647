import { scryptSync } from "node:crypto";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { hashText } from "../../../src/model/serving.js";

/** Who may come in where features close the routes, what those send, and the portal that is asked. */

/** The features that close routes, in the order of their judgement, and the status of their refusals. */
export const REFUSALS = { access: 403, basic: 401, forwardAuth: 302 } as const;
export type Closing = keyof typeof REFUSALS;

/** Names of features; the table of all of them needs this module. */
type Features = readonly string[];

export const closingsOf = (features: Features): Closing[] =>
  (Object.keys(REFUSALS) as Closing[]).filter((name) => features.includes(name));

/** Who a client is. */
export interface Visitor {
  readonly seed: number;
  /** The feature that refuses it. */
  readonly keptOutBy?: Closing | undefined;
}

/** Addresses that clients have by their word, which the proxy believes with `access`. */
const AT_HOME = "192.168.1.5";
export const HOME = `${AT_HOME}/32`;
const STRANGER = "198.51.100.7";

export const USER_FIELD = "Remote-User";
const [USER, PASSWORD] = ["alice", "correct horse"];
const COOKIE = "portal";

/** The name that the upstream gets; undefined where nothing names one. */
export function userOf(features: Features, { seed }: Visitor): string | undefined {
  if (features.includes("basic")) return USER;
  return features.includes("forwardAuth") ? `user${seed}` : undefined;
}

/** What a client sends to come in, or to be refused; and a name that it makes up. */
export function visitorFields(
  features: Features,
  visitor: Visitor,
  cookies: readonly string[] = [],
): Record<string, string> {
  const { keptOutBy, seed } = visitor;
  const closings = closingsOf(features);
  const sessions = closings.includes("forwardAuth") && keptOutBy !== "forwardAuth" ? [sessionOf(seed)] : [];
  const all = [...cookies, ...sessions].join("; ");
  const secret = keptOutBy === "basic" ? "wrong" : PASSWORD;
  // A client that names no user is refused as well.
  const isSilent = keptOutBy === "basic" && seed % 2 === 0;
  const authorization = `Basic ${Buffer.from(`${USER}:${secret}`).toString("base64")}`;
  return {
    ...(closings.includes("access")
      ? { "x-forwarded-for": keptOutBy === "access" ? STRANGER : AT_HOME }
      : {}),
    ...(closings.includes("basic") && !isSilent ? { authorization } : {}),
    ...(all === "" ? {} : { cookie: all }),
    ...(userOf(features, visitor) === undefined ? {} : { "remote-user": "mallory", remote_user: "mallory" }),
  };
}

const sessionOf = (seed: number): string => `${COOKIE}=user${seed}`;

/** The cookie by which the portal renews the session of a client with its response to a request. */
export const renewalOf = ({ seed }: Visitor, path: string): string => `${sessionOf(seed)}; Path=${path}`;

export const isRenewal = (cookie: string): boolean => cookie.startsWith(`${COOKIE}=`);

/** The text of a file of users. A hash costs little here. */
export function usersText(): string {
  const salt = Buffer.from("salt of 16 bytes");
  const hash = scryptSync(PASSWORD, salt, 32, { N: 2 ** 10, r: 8, p: 1 });
  const unpadded = (bytes: Buffer): string => bytes.toString("base64").replace(/=+$/, "");
  const text = hashText({ kind: "scrypt", ln: 10, r: 8, p: 1, salt: unpadded(salt), hash: unpadded(hash) });
  return `${USER}:${text}\n`;
}

/** Follows both conventions: a cookie comes in, everyone else is sent to a page. */
export class Portal {
  private readonly server: Server;
  private questions = 0;

  private constructor() {
    this.server = createServer((request, response) => void this.respond(request, response));
  }

  static async start(): Promise<Portal> {
    const portal = new Portal();
    portal.server.listen(0, "127.0.0.1");
    await once(portal.server, "listening");
    return portal;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.server.address() as AddressInfo).port}/verify`;
  }

  close(): void {
    this.server.close();
    this.server.closeAllConnections();
  }

  private async respond({ headers }: IncomingMessage, response: ServerResponse): Promise<void> {
    response.on("error", () => undefined);
    // The bodies and streams of other requests come in between.
    if (this.questions++ % 3 === 0) await sleep(LATE_MS);
    const user = /portal=(user\d+)/.exec(headers.cookie ?? "")?.[1];
    if (user === undefined) return void response.writeHead(302, { Location: "https://portal.test/" }).end();
    const url = String(headers["x-original-url"] ?? headers["x-forwarded-uri"]);
    const renewed = `${COOKIE}=${user}; Path=${url.replace(/^https?:\/\/[^/]*/, "")}`;
    response.writeHead(200, { [USER_FIELD]: user, "Set-Cookie": renewed }).end("in");
  }
}

const LATE_MS = 15;
