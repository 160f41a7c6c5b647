import { Fn, Op } from "cdktf";
import { IPV4_SPECIAL_RANGES, IPV6_RANGES } from "../model/address.js";
import type { IHost } from "./host.js";
import { hasTokens } from "./props/tokens.js";

/**
 * DNS records of a host as the value of an output. If an address is known only at apply, Terraform decides then whether
 * it is public: an empty list would say that no record is needed.
 */
export function dnsRecordsOutput(host: IHost): unknown {
  const { publicName: name, address, ipv6Address } = host;
  if (name === undefined || !hasTokens([address, ipv6Address])) return host.dnsRecords;
  const whenPublic = (isPublic: unknown, type: string, value: string): unknown =>
    Fn.conditional(isPublic, [{ name, type, value }], []);
  return Fn.concat([
    whenPublic(
      Op.not(Fn.anytrue(IPV4_SPECIAL_RANGES.map(([base, length]) => isInNetwork(address, length, base)))),
      "A",
      address,
    ),
    ...(ipv6Address === undefined ? [] : [whenPublic(isPublicIpv6(ipv6Address), "AAAA", ipv6Address)]),
  ]);
}

/** Whether an address is in the network that begins at `base`. What is none has its check, and is said there alone. */
function isInNetwork(address: string, length: number, base: string): unknown {
  return Fn.try([Op.eq(Fn.cidrhost(Fn.join("/", [address, String(length)]), 0), base), false]);
}

/** As the model's `ipv6Scope`: in the range of public addresses, and in none of those listed before it. */
function isPublicIpv6(address: string): unknown {
  const at = IPV6_RANGES.findIndex(([, , scope]) => scope === "public");
  const [base, length] = IPV6_RANGES[at]!;
  const others = IPV6_RANGES.slice(0, at).map(([other, bits]) => isInNetwork(address, bits, other));
  return Op.and(isInNetwork(address, length, base), Op.not(Fn.anytrue(others)));
}
