import { usualSpelling } from "../actions/fieldFates.js";
import { type Problem, problem } from "../text/problem.js";
import { clientFieldProblems, fieldsOfOthers } from "./accessChecks.js";
import { CERTIFICATE_FIELDS } from "./clientIdentity.js";
import type { ProxyConfig, VirtualServerConfig } from "./config.js";

/** Rules about certificates of clients that span fields. */
export function clientCertificateProblems(config: ProxyConfig): Problem[] {
  const { virtualServers } = config;
  const fields = virtualServers.flatMap(({ clientCertificate }) =>
    clientCertificate === undefined ? [] : [...CERTIFICATE_FIELDS, clientCertificate.userField ?? []].flat(),
  );
  return [
    ...virtualServers.flatMap((server, s) => {
      const at = `virtualServers[${s}].clientCertificate`;
      if (server.clientCertificate === undefined) return [];
      return [
        ...withoutTls(config, server, at),
        ...clientFieldProblems(`${at}.userField`, server.clientCertificate.userField),
        ...namedTwice(config, server, at),
      ];
    }),
    ...fieldsOfOthers(
      virtualServers,
      fields,
      "the proxy names a client's certificate",
      "Remove the field here.",
    ),
  ];
}

/** No certificate arrives without TLS: the site would be open there, or closed to everyone. */
function withoutTls(
  { listeners }: Pick<ProxyConfig, "listeners">,
  server: VirtualServerConfig,
  path: string,
): Problem[] {
  const plain = listeners.find(
    ({ name, protocol }) => protocol === "http" && server.listeners.includes(name),
  );
  if (plain === undefined) return [];
  const message = `cannot be asked for on the listener ${plain.name}, which has no TLS`;
  const allowed =
    "a virtual server whose listeners are all `https`; one of its own may redirect http to https";
  return [problem("config.client-certificate-without-tls", path, message, { received: plain.name, allowed })];
}

/** Two sources of one field: nobody could say which user an upstream gets. */
function namedTwice(
  { accessPolicies = {} }: ProxyConfig,
  server: VirtualServerConfig,
  at: string,
): Problem[] {
  const received = server.clientCertificate?.userField;
  if (received === undefined) return [];
  const policies = new Set(server.routes.flatMap(({ access }) => access ?? []));
  const other = [...policies].find((name) => {
    const { basic, forwardAuth } = accessPolicies[name] ?? {};
    const others = [basic?.userField ?? [], forwardAuth?.copyFields ?? []].flat();
    return others.some((one) => usualSpelling(one) === usualSpelling(received));
  });
  if (other === undefined) return [];
  const message = `is also the field by which the policy ${other} names the user`;
  return [problem("config.bad-header", `${at}.userField`, message, { received, fix: "Use another field." })];
}
