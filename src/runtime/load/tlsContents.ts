/** TLS material of one listener, as PEM. Never logged, never part of a message. */
export interface TlsContents {
  readonly key: string;
  readonly cert: string;
  readonly dhparam?: string;
}
