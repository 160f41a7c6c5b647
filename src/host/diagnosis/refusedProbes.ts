import {
  AccessGuards,
  NO_RESPONSE,
  normalisePath,
  type ProxyConfig,
  refusalStatus,
} from "../../model/index.js";
import { status } from "./expectation.js";
import type { ExpectedResponse } from "./expectedResponses.js";

/**
 * Probes come from the host itself. Where an access policy does not let the host in, the refusal is the expected response;
 * a connection that is closed is none, so that nothing is asked there.
 */
export function withRefusals(config: ProxyConfig, rows: readonly ExpectedResponse[]): ExpectedResponse[] {
  const guards = new AccessGuards(config);
  return rows.flatMap((row) => {
    const { route, request } = row;
    const path = normalisePath(request.path);
    if (route === undefined || path === undefined) return [row];
    // A connection to an own address comes from that address.
    const refusal = guards.of(route)?.refusal(request.address, request.path, path);
    if (refusal === undefined) return [row];
    const expected = refusalStatus(refusal);
    return expected === NO_RESPONSE ? [] : [{ ...row, expected: [status(expected)] }];
  });
}
