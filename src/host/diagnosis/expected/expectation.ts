import type { ExpectedRow } from "../../../model/host/expect.js";
import { printableValue } from "../../../model/text/printable.js";

/** The response to a probe. Field names are lower case. */
export interface ReceivedResponse {
  readonly protocol: "HTTP/1.1" | "HTTP/2";
  readonly status: number;
  readonly headers: Readonly<Record<string, string | undefined>>;
  /** The certificate of the connection, over TLS. */
  readonly certificate?: SeenCertificate;
  /** Beginning of the body; fetched only if the status alone does not show which server responded, or for its members. */
  readonly body?: string;
}

/** A server's certificate, whether a client trusts it or not. */
export interface SeenCertificate {
  /** Whether it covers the host that was requested. */
  readonly covers: boolean;
  /** The names and addresses that it covers. */
  readonly subjectAltName: string;
}

/** An expected property of a response: its description, whether it is met, and the actual value. */
export interface Expectation {
  /** Name of the field that it is about. */
  readonly field?: string;
  /** The URLs of which a `Location` has to lead to one. */
  readonly targets?: readonly string[];
  readonly message: string;
  holds(response: ReceivedResponse): boolean;
  seen(response: ReceivedResponse): string;
}

export function status(expected: number): Expectation {
  return {
    message: String(expected),
    holds: (response) => response.status === expected,
    seen: (response) => String(response.status),
  };
}

/** The response has any of several statuses. */
export function statusOf(expected: readonly number[]): Expectation {
  return {
    message: expected.join(" or "),
    holds: (response) => expected.includes(response.status),
    seen: (response) => String(response.status),
  };
}

/** The response is a file, or leads to one. */
export function servesFile(): Expectation {
  return {
    message: "a file (not a 4xx or 5xx)",
    holds: (response) => response.status < 400,
    seen: (response) => String(response.status),
  };
}

/** Any status but those of the 500s: a directory without an index has no file at its own path. */
export function serves(): Expectation {
  return {
    message: "a response (not a 5xx)",
    holds: (response) => response.status < 500,
    seen: (response) => String(response.status),
  };
}

/**
 * The response is the upstream's own, whatever its content (service 1.1: payloads and statuses are those of the daemons).
 * A 404 or 503 is the daemon's unless it carries the proxy's error page.
 */
export function fromUpstream(): Expectation {
  return {
    message: "a response from the daemon (not a 502 or 504, nor a 404 or 503 from the proxy)",
    holds: (response) =>
      response.status !== 502 &&
      response.status !== 504 &&
      !isProxysRefusal(response) &&
      !(response.status === 404 && isOwnErrorPage(response)),
    seen: (response) =>
      isOwnErrorPage(response) ? `${response.status} from the proxy` : String(response.status),
  };
}

/** HTTP/2, as ALPN negotiated it. */
export function http2(): Expectation {
  return {
    message: "HTTP/2",
    holds: (response) => response.protocol === "HTTP/2",
    seen: (response) => response.protocol,
  };
}

/** A certificate that covers the requested name, from any issuer. */
export function certificateFor(name: string): Expectation {
  return {
    message: `a certificate for ${name}`,
    holds: ({ certificate }) => certificate?.covers === true,
    seen: ({ certificate }) =>
      certificate === undefined ? "no certificate" : `a certificate for ${certificate.subjectAltName}`,
  };
}

/** A field with exactly this value; if `loose`, case and spacing of parameters do not matter. */
export function field(name: string, value: string, loose = false): Expectation {
  const fold = (text: string | undefined): string | undefined =>
    loose ? text?.toLowerCase().replace(/\s*;\s*/g, "; ") : text;
  return fieldWhere(name, value, (received) => fold(received) === fold(value));
}

/** A `Location` that leads to one of these; it may be relative to the request's URL (RFC 9110, 10.2.2). */
export function location(...targets: readonly string[]): Expectation {
  const leadsTo = (target: string, received: string): boolean =>
    received === target || (URL.canParse(received, target) && new URL(received, target).href === target);
  const leadsThere = (received: string | undefined): boolean =>
    received !== undefined && targets.some((target) => leadsTo(target, received));
  return { ...fieldWhere("Location", targets.join(" or "), leadsThere), targets };
}

/** A member of the JSON object in the body, with one of these values. */
export function member({ name, values }: NonNullable<ExpectedRow["members"]>[number]): Expectation {
  const text = (value: unknown): string => `${name}: ${JSON.stringify(value)}`;
  return {
    message: values.map(text).join(" or "),
    holds: (response) => values.includes(membersOf(response)?.[name] as string),
    seen: (response) => {
      const value = membersOf(response)?.[name];
      return value === undefined ? `no ${name}` : printableValue(text(value));
    },
  };
}

function membersOf({ body = "" }: ReceivedResponse): Readonly<Record<string, unknown>> | undefined {
  try {
    const value: unknown = JSON.parse(body);
    return typeof value === "object" && value !== null ? { ...value } : undefined;
  } catch {
    return undefined;
  }
}

/** A media type without regard to its parameters; `image/*` for any image. */
export function mediaType(type: string): Expectation {
  const accepts = (received: string): boolean => {
    const bare = received.split(";")[0]!.trim().toLowerCase();
    return type.endsWith("/*") ? bare.startsWith(type.slice(0, -1)) : bare === type;
  };
  return fieldWhere("Content-Type", type, (received) => received !== undefined && accepts(received));
}

/** A list field that contains these members, in any order and among others. */
export function fieldWith(name: string, ...members: string[]): Expectation {
  return fieldWhere(name, members.join(", "), (received) => {
    const there = (received ?? "").split(",").map((member) => member.trim().toLowerCase());
    return members.every((member) => there.includes(member.toLowerCase()));
  });
}

/** A field that is present, with any value. */
export function fieldPresent(name: string): Expectation {
  return fieldWhere(name, "", (received) => received !== undefined && received !== "");
}

/** A field that is not there. */
export function fieldAbsent(name: string): Expectation {
  return { ...fieldWhere(name, "", (received) => received === undefined), message: `no ${name}` };
}

/** A field as a row of a deployment has it; media types without regard to case and spacing. */
export function writtenField(written: NonNullable<ExpectedRow["fields"]>[number]): Expectation {
  const { name, value, includes, mediaType: type, version, absent } = written;
  if (absent === true) return fieldAbsent(name);
  if (version !== undefined) return serverField(version);
  if (type !== undefined) return mediaType(type);
  if (includes !== undefined) return fieldWith(name, ...includes);
  if (value !== undefined) return field(name, value, name.toLowerCase() === "content-type");
  return fieldPresent(name);
}

/** Whether `Server` contains a version: it shows which virtual server responded (service 5.2). */
export function serverField(versioned: boolean): Expectation {
  return fieldWhere("Server", versioned ? "with version" : "without version", (received) =>
    versioned ? isVersioned(received) : received !== undefined && !isVersioned(received),
  );
}

/** True for a `Server` value such as `portico/1.2`. */
export function isVersioned(server: string | undefined): boolean {
  return server !== undefined && /\/\d/.test(server);
}

/** True if the body is an error page of the proxy itself: it closes with the proxy's name between the rules. */
export function isOwnErrorPage(response: ReceivedResponse): boolean {
  return isVersioned(response.headers["server"]) || hasOwnPage(response);
}

const hasOwnPage = ({ body = "" }: ReceivedResponse): boolean =>
  /<center>portico(?:\/[\w.-]+)?<\/center>/.test(body);

/**
 * Whether the proxy responded in place of an upstream. The body decides, because applications have the same statuses:
 * a version in `Server` is also in what they respond.
 */
export const isProxysRefusal = (response: ReceivedResponse): boolean =>
  NO_UPSTREAM.has(response.status) && hasOwnPage(response);

const NO_UPSTREAM: ReadonlySet<number> = new Set([502, 503, 504]);

/** Whether only the body of a response shows who made it. */
export const isUnclear = (status: number): boolean => status === 404 || NO_UPSTREAM.has(status);

function fieldWhere(
  name: string,
  value: string,
  accepts: (received: string | undefined) => boolean,
): Expectation {
  const lower = name.toLowerCase();
  return {
    field: name,
    message: value === "" ? name : `${name}: ${value}`,
    holds: (response) => accepts(response.headers[lower]),
    seen: (response) =>
      response.headers[lower] === undefined ? `no ${name}` : `${name}: ${response.headers[lower]}`,
  };
}
