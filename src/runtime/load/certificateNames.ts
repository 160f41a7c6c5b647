import { X509Certificate } from "node:crypto";
import { isIP } from "node:net";
import { redirectGoalOf } from "../../model/actions/table.js";
import {
  CATCH_ALL,
  NameTable,
  coversName,
  leadsTo,
  type ListenerConfig,
  type NamedCertificate,
  type Problem,
  problem,
  type ProxyConfig,
  sniNames,
} from "../../model/serving.js";
import { certificatePlaces } from "./wantedCertificates.js";
import type { CertificateContents } from "../tls/tlsContents.js";

/**
 * Warnings about the names of a listener's certificates: names that clients use and no certificate covers, which
 * browsers refuse, and names for which a certificate is never chosen.
 *
 * @param index of the listener, the first of those with the same TLS section
 */
export function nameWarnings(
  config: ProxyConfig,
  index: number,
  certificates: readonly CertificateContents[],
): Problem[] {
  const leaves = certificatePlaces(config, index).flatMap(({ id, label, source }) => {
    if (source.type === "acme") return [namedAs(label, source.acme.names)];
    const contents = certificates.find((one) => one.id === id);
    return contents === undefined ? [] : [named(label, contents.cert)];
  });
  const byName = new NameTable<LabelledCertificate>();
  const doubles = leaves.flatMap((one, i) => {
    const found = i === 0 ? [] : notChosen(one, byName);
    byName.add(one.names, one);
    return found;
  });
  const same = JSON.stringify(config.listeners[index]!.tls);
  const listeners = config.listeners.filter((listener) => JSON.stringify(listener.tls) === same);
  const names = new Set(listeners.flatMap((listener) => namesOn(config, listener)));
  const missing = [...names].filter((name) => !coversName((byName.find(name) ?? leaves[0]!).leaf, name));
  if (missing.length === 0) return doubles;
  const label = leaves.length === 1 ? leaves[0]!.label : `listeners[${index}].tls`;
  const subject = leaves.length === 1 ? "does not cover" : "has no certificate for";
  const allowed = leaves.map(({ leaf }) => leaf.subjectAltName ?? "").join("; ");
  const message = `${subject} ${missing.join(", ")}`;
  return [problem("files.name-not-covered", label, message, { allowed }), ...doubles];
}

interface LabelledCertificate {
  readonly label: string;
  readonly leaf: NamedCertificate;
  readonly names: readonly string[];
}

function named(label: string, pem: string): LabelledCertificate {
  const leaf = new X509Certificate(pem);
  return { label, leaf, names: sniNames(leaf.subjectAltName) };
}

/** A certificate that an authority is to issue, as if it had: whatever serves in its place will not last. */
function namedAs(label: string, names: readonly string[]): LabelledCertificate {
  const table = new NameTable<string>();
  for (const name of names) table.add([name], name);
  const check = (name: string): string | undefined => table.find(name);
  const leaf = { checkHost: check, checkIP: check, subjectAltName: names.map(alternative).join(", ") };
  return { label, leaf, names: names.filter((name) => isIP(name) === 0) };
}

const alternative = (name: string): string => (isIP(name) === 0 ? `DNS:${name}` : `IP Address:${name}`);

/** Warns of a certificate that SNI never chooses, or not for some of its names, which an earlier certificate has. */
function notChosen(
  { label, names }: LabelledCertificate,
  earlier: NameTable<LabelledCertificate>,
): Problem[] {
  const code = "files.certificate-not-chosen";
  if (names.length === 0) return [problem(code, label, "contains no DNS name, so no client can ask for it")];
  const taken = names.filter((name) => earlier.holder(name) !== undefined);
  if (taken.length === 0) return [];
  const others = new Set(taken.map((name) => earlier.holder(name)!.label));
  const message = `is not used for ${taken.join(", ")}, for which clients get ${[...others].join(" and ")}`;
  return [problem(code, label, message)];
}

/**
 * Names that clients use on a listener. A default server responds for all names; those known then are the ones that
 * other listeners redirect from.
 */
function namesOn(config: ProxyConfig, listener: ListenerConfig): string[] {
  const servers = config.virtualServers.filter(({ listeners, routes }) => {
    const leadsHere = routes.some(({ action }) => {
      const goal = redirectGoalOf(action);
      return goal !== undefined && goal.host === undefined && leadsTo(goal, listener);
    });
    return listeners.includes(listener.name) || leadsHere;
  });
  return servers.flatMap(({ serverNames }) => serverNames).filter((name) => name !== CATCH_ALL);
}
