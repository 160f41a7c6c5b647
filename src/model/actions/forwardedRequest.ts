import type { ActionOf } from "./table.js";

/** The input of the rules in `forwarding.ts`. */

/** Field names and values in turn, original order and case, duplicates kept. */
export type HeaderList = string[];

/** The data of a request that the rules use. */
export interface ForwardedRequest {
  readonly method: string;
  readonly target: string;
  /** The normalised path that routing used. */
  readonly path: string;
  readonly headers: HeaderList;
  /**
   * The lines of `headers` that pass and the blank line after them, if {@link requestFieldFate} alone decides about
   * each; else undefined.
   */
  readonly plainLines?: string | undefined;
  /** Host as the client asked, port included; empty if it named none. */
  readonly host: string;
  /** The same, normalised and without port. */
  readonly serverName: string;
  readonly scheme: "http" | "https";
  readonly clientAddress: string;
  /** Address of the trusted proxy that named the client; undefined if the client itself is connected. */
  readonly forwardedBy?: string | undefined;
  /** Whether the peer of the connection is in `trustedProxies`. */
  readonly trusted: boolean;
  /** The protocol of an upgrade that the route forwards, as the route writes it; undefined for any other request. */
  readonly upgrade?: string | undefined;
  /** The request's id, if the config gives one to each request. */
  readonly requestId?: string | undefined;
  /** Who asks, if access policies of the route ask for that. */
  readonly user?: VerifiedUser | undefined;
  /** Takes the first field of each name that is dropped for its name. */
  dropped?(name: string): void;
}

/** Who asks, as access policies have verified it: what it changes in a request to an upstream. */
export interface VerifiedUser {
  /** Names of the client's fields that do not pass, in no spelling: as `usualSpelling` writes them. */
  readonly dropped: ReadonlySet<string>;
  /** Fields that the upstream gets: names and values, one char a byte. */
  readonly fields: readonly (readonly [name: string, value: string])[];
}

/** The data of a route that the rules use. */
export interface ProxiedRoute {
  readonly path: string;
  readonly match: "prefix" | "segment" | "exact";
  readonly action: ActionOf<"proxy">;
  /** Field in which the upstream gets the request's id; undefined if it gets none. */
  readonly requestIdField?: string | undefined;
}
