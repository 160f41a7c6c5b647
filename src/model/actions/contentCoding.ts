/** Codings that a file may have beside it, and how the encoded file's name ends. */
export const CODING_SUFFIXES = { zstd: ".zst", br: ".br", gzip: ".gz" } as const;

/** The name of a content coding (RFC 9110, 8.4.1; RFC 7932; RFC 8878). */
export type ContentCoding = keyof typeof CODING_SUFFIXES;

/**
 * The codings that a client accepts (RFC 9110, 12.5.3), by weight; codings with the same weight stay in their order.
 * Codings with a lower weight than `identity` are left out.
 *
 * A client without the field accepts every coding by the RFC, but often cannot read any: it gets none. So does one whose
 * field is malformed, and one that refuses `identity` where no encoded file is there: a client may still read it.
 */
export function acceptedCodings(
  headers: readonly string[],
  available: readonly ContentCoding[],
): readonly ContentCoding[] {
  const weights = weightsOf(headers);
  if (weights === undefined) return [];
  const least = weights.get("identity") ?? 0;
  const weight = (coding: ContentCoding): number =>
    weights.get(coding) ?? (coding === "gzip" ? weights.get("x-gzip") : undefined) ?? weights.get("*") ?? 0;
  return available
    .filter((coding) => weight(coding) > 0 && weight(coding) >= least)
    .sort((a, b) => weight(b) - weight(a));
}

/** Undefined without the field, and for one that is malformed. */
function weightsOf(headers: readonly string[]): ReadonlyMap<string, number> | undefined {
  let weights: Map<string, number> | undefined;
  for (let i = 0; i < headers.length; i += 2) {
    if (headers[i]!.toLowerCase() !== "accept-encoding") continue;
    weights ??= new Map<string, number>();
    for (const member of headers[i + 1]!.split(",")) {
      const [coding = "", weight, more] = member.split(";").map((part) => part.trim());
      // Members of a list may be empty (RFC 9110, 5.6.1.2).
      if (coding === "" && weight === undefined) continue;
      const value = weight === undefined ? 1 : WEIGHT.test(weight) ? Number(weight.slice(2)) : NaN;
      if (!TOKEN.test(coding) || !(value <= 1) || more !== undefined) return undefined;
      weights.set(coding.toLowerCase(), value);
    }
  }
  return weights;
}

const TOKEN = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;
const WEIGHT = /^q=[01](?:\.[0-9]{0,3})?$/i;
