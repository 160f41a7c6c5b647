import { X509Certificate } from "node:crypto";
import { certificatePlaces } from "./wantedCertificates.js";
import type { TlsContents } from "../tls/tlsContents.js";
import { certificateEnd, daysLeftText } from "../../model/net/certificateEnd.js";
import { type Problem, problem, type ProxyConfig } from "../../model/serving.js";

/** The certificates of a PEM file, in its order; `undefined` is one that cannot be read. */
export function certificatesOf(pem: string): (X509Certificate | undefined)[] {
  const blocks = pem.match(/-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g) ?? [];
  return blocks.map((block) => {
    try {
      return new X509Certificate(block);
    } catch {
      return undefined;
    }
  });
}

/** Certificates of a chain outside their time. */
export function validityProblems(
  chain: readonly X509Certificate[],
  label: string,
  now = Date.now(),
): Problem[] {
  return chain.flatMap((cert, i) => {
    if (now > Date.parse(cert.validTo)) {
      return [problem("files.certificate-expired", label, `${nameOf(i)}expired on ${isoDate(cert.validTo)}`)];
    }
    if (now < Date.parse(cert.validFrom)) {
      const message = `${nameOf(i)}is not valid before ${isoDate(cert.validFrom)}, but the time is ${new Date(now).toISOString()}`;
      return [problem("files.certificate-not-yet-valid", label, message)];
    }
    return [];
  });
}

/** Certificates of a chain that are valid, and will not be for long. */
export function expiryWarnings(
  chain: readonly X509Certificate[],
  label: string,
  now = Date.now(),
): Problem[] {
  return chain.flatMap((cert, i) => {
    const [notBefore, notAfter] = [Date.parse(cert.validFrom), Date.parse(cert.validTo)];
    const end = certificateEnd({ notBefore, notAfter }, now);
    if (end === "ended" || end === "later") return [];
    const message = `${nameOf(i)}expires on ${isoDate(cert.validTo)}, in ${daysLeftText(notAfter - now)}`;
    return [problem("files.certificate-expires-soon", label, message)];
  });
}

/** Daily warnings for the administrator about certificates in service, each file once. */
export function certificateWarnings(
  config: ProxyConfig,
  tls: Readonly<Record<string, TlsContents>>,
  now = Date.now(),
): Problem[] {
  const files = new Map<string, { chain: X509Certificate[]; label: string }>();
  config.listeners.forEach(({ name }, i) => {
    for (const { id, label, source } of certificatePlaces(config, i)) {
      const contents = tls[name]!.certificates.find((one) => one.id === id);
      if (contents === undefined || source.type !== "files" || files.has(id)) continue;
      const chain = certificatesOf(contents.cert).filter((cert) => cert !== undefined);
      files.set(id, { chain, label });
    }
  });
  return [...files.values()].flatMap(({ chain, label }) => [
    ...validityProblems(chain, label, now),
    ...expiryWarnings(chain, label, now),
  ]);
}

const nameOf = (place: number): string => (place === 0 ? "" : `certificate ${place + 1} of the chain `);

const isoDate = (text: string): string => new Date(text).toISOString();
