import { isIP } from "node:net";
import { AcmeError, type AcmeProblem } from "./acmeError.js";
import { problemOf, type AcmeResource } from "./acmeClient.js";

/** Reads the JSON of an order and its authorizations. Nothing in it can be relied on without a check. */

export interface OfferedChallenge {
  readonly type: string;
  readonly url: string;
  readonly token: string;
  readonly status: string;
  readonly error?: unknown;
}

export function challengesIn({ challenges }: AcmeResource["value"]): OfferedChallenge[] {
  const list = Array.isArray(challenges) ? (challenges as Partial<OfferedChallenge>[]) : [];
  return list.filter(
    (one): one is OfferedChallenge =>
      typeof one?.type === "string" && typeof one.url === "string" && isToken(one),
  );
}

/** A token goes into a path: RFC 8555, 8.3 has it in base64url. */
const isToken = ({ token }: { token?: unknown }): boolean =>
  typeof token === "string" && /^[\w-]{16,512}$/.test(token);

export const urlsIn = (value: unknown): string[] =>
  Array.isArray(value) ? value.filter((url) => typeof url === "string") : [];

/** @throws AcmeError `badResponse` if the order does not name it */
export function urlOf({ value }: AcmeResource, field: "finalize" | "certificate"): string {
  const url = value[field];
  if (typeof url === "string") return url;
  throw new AcmeError("badResponse", `the order has no ${field} that is a URL`);
}

/** Why a name was not proved, from its challenge. */
export function refusalOf(
  authorization: AcmeResource["value"],
  { name }: { readonly name: string },
): AcmeProblem {
  const errors = challengesIn(authorization).map(({ error }) => problemOf(error));
  const found = errors.find((error) => error !== undefined && error.code !== "");
  if (found !== undefined) return { ...found, name };
  const { status } = authorization;
  const shown = typeof status === "string" ? status : "not valid";
  return { code: "unauthorized", detail: `the authorization is ${shown}`, name };
}

export function errorOf({ value }: AcmeResource): AcmeError {
  const found = problemOf(value["error"]);
  if (found === undefined || found.code === "")
    return new AcmeError("serverInternal", "the order is invalid, and the authority does not say why");
  const subproblems = found.name === undefined ? [] : [found];
  return new AcmeError(found.code, found.detail, { subproblems });
}

export const identifierOf = (name: string) => ({
  type: isIP(name) === 0 ? "dns" : "ip",
  value: canonical(name),
});

/** RFC 8738, 3: an IPv6 address as RFC 5952 writes it. */
export const canonical = (name: string): string =>
  isIP(name) === 6 ? new URL(`http://[${name}]`).hostname.slice(1, -1) : name;

/** No authority certifies an address with a zone. */
const textOf = (value: unknown): string =>
  typeof value === "string" && !value.includes("%") ? canonical(value) : "";

export function sameIdentifiers(value: unknown, names: readonly string[]): boolean {
  const found = Array.isArray(value)
    ? value.map((one: { value?: unknown } | null) => textOf(one?.value))
    : [];
  return found.sort().join(" ") === names.map(canonical).sort().join(" ");
}
