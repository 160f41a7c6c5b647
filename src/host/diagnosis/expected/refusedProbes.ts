import {
  AccessGuards,
  NO_RESPONSE,
  normalisePath,
  type ProxyConfig,
  refusalStatus,
  type RouteConfig,
} from "../../../model/index.js";
import { type Expectation, serves, status } from "./expectation.js";

/** A row of expected responses, as far as it matters here. */
interface ProbeRow {
  readonly request: { readonly address: string; readonly path: string };
  readonly route?: RouteConfig;
  readonly expected: readonly Expectation[];
}

/**
 * Probes come from the host itself, have no certificate, and name no user. Where an access policy does not let them in, the refusal is the expected
 * response; a connection that is closed is none, so that nothing is asked there. What a portal responds to a stranger is its
 * own, but it has to respond.
 */
export function withRefusals<R extends ProbeRow>(config: ProxyConfig, rows: readonly R[]): R[] {
  const guards = new AccessGuards(config);
  return rows.flatMap((row) => {
    const { route, request } = row;
    const path = normalisePath(request.path);
    if (route === undefined || path === undefined) return [row];
    const server = config.virtualServers.find(({ routes }) => routes.includes(route));
    if (server?.clientCertificate?.required === true) return [{ ...row, expected: [status(403)] }];
    // A connection to an own address comes from that address.
    const guard = guards.of(route);
    const refusal = guard?.refusalOfUnknown(request.address, request.path, path);
    if (refusal === undefined)
      return [guard?.asking(request.path, path).length ? { ...row, expected: [serves()] } : row];
    const expected = refusalStatus(refusal);
    return expected === NO_RESPONSE ? [] : [{ ...row, expected: [status(expected)] }];
  });
}
