/** Where a proxy answers monitoring over HTTP, on an address. The firewall opens nothing for it. */
export interface MetricsAddress {
  readonly address: string;
  readonly port: number;
  readonly allow?: readonly string[];
  readonly anyAddress?: boolean;
}

/** Where a proxy answers monitoring over HTTP, on a Unix socket; `/run/portico` is the service's own directory. */
export interface MetricsSocket {
  readonly path: string;
}
