import {
  DOMAIN_NAME_LENGTH_MAX,
  DOMAIN_NAME_PATTERN,
  IPV4_PATTERN,
  IPV6_PATTERN,
  LONG_LABEL_PATTERN,
} from "../../model/text/textRule.js";
import type { IConstruct } from "constructs";
import type { HostAddresses } from "../../model/host/host.js";
import { type LateValue, latePort, lateText } from "./lateChecks.js";

/** A host as far as its checks are concerned. */
interface CheckedHost extends IConstruct {
  readonly props: HostAddresses & { readonly sshPort?: number | false };
}

/** Checks of a host's addresses and names that only Terraform knows. */
export function lateHostChecks(host: CheckedHost): LateValue[] {
  const at = (name: string): string => `${host.node.path}.${name}`;
  const { address, virtualAddress, ipv6Address, publicName, gateway, dnsDomain } = host.props;
  const { nameservers = [], sshPort } = host.props;
  return [
    ...lateText("host.bad-ipv4", at("address"), IPV4, address),
    ...lateText("host.bad-virtual-address", at("virtualAddress"), IPV4, virtualAddress),
    ...lateText("host.bad-ipv6", at("ipv6Address"), IPV6, ipv6Address),
    ...lateText("host.bad-name", at("publicName"), NAME, publicName),
    ...lateText("host.bad-network", at("gateway"), GATEWAY, gateway),
    ...lateText("host.bad-name", at("dnsDomain"), NAME, dnsDomain),
    ...nameservers.flatMap((one, i) =>
      lateText("host.bad-nameserver", at(`nameservers[${i}]`), NAMESERVER, one),
    ),
    ...latePort(at("sshPort"), sshPort),
  ];
}

const IPV4 = { pattern: `^${IPV4_PATTERN}$`, allowed: "a static IPv4 address such as 192.0.2.10" };
const IPV6 = { pattern: `^${IPV6_PATTERN}$`, allowed: "an IPv6 address such as 2001:db8::1" };
const NAME = {
  pattern: `^${DOMAIN_NAME_PATTERN}$`,
  never: `${LONG_LABEL_PATTERN}|^_$|(?:^|\\.)[0-9]+$`,
  lengthMax: DOMAIN_NAME_LENGTH_MAX,
  allowed: "a domain name in lower case, without a port",
};
const GATEWAY = { pattern: `^${IPV4_PATTERN}$`, allowed: "the router's IPv4 address, such as 192.0.2.1" };
const NAMESERVER = { pattern: `^(?:${IPV4_PATTERN}|${IPV6_PATTERN})$`, allowed: "an IPv4 or IPv6 address" };
