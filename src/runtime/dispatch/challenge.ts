/** An authority's challenge for a name, with the response. The order and the workers use the same type. */
export type Challenge =
  | {
      readonly type: "http-01";
      /** The part after `/.well-known/acme-challenge/`. */
      readonly token: string;
      /** The body of the response. */
      readonly keyAuthorization: string;
    }
  | {
      readonly type: "tls-alpn-01";
      /** The name that the authority sends in SNI: for an address its reverse name (RFC 8738, 6). */
      readonly name: string;
      readonly key: string;
      /** Ready to serve (RFC 8737, 3). */
      readonly cert: string;
    };

/** The path that an authority asks over plain HTTP (RFC 8555, 8.3). */
export const challengePath = (token: string): string => `/.well-known/acme-challenge/${token}`;
