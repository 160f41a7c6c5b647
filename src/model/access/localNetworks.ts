/**
 * What people mean by a local network: loopback (RFC 1122, RFC 4291), private addresses (RFC 1918, RFC 4193), link-local
 * ones (RFC 3927, RFC 4291). 100.64.0.0/10 (RFC 6598) is not among them: behind a provider's NAT, its other customers have
 * these addresses.
 */
export const LOCAL_NETWORKS: readonly string[] = Object.freeze([
  ...["127.0.0.0/8", "10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "169.254.0.0/16"],
  ...["::1/128", "fc00::/7", "fe80::/10"],
]);
