import { type ResponseFieldRules, responseFieldRules } from "../index.js";
import type { ReviewChange } from "./findings.js";
import type { WayIn } from "./ways.js";

/** Fields by which a response restricts browsers. */
const PROTECTIVE = [
  "strict-transport-security",
  "content-security-policy",
  "x-frame-options",
  "x-content-type-options",
  "referrer-policy",
  "permissions-policy",
  "cross-origin-opener-policy",
  "cross-origin-embedder-policy",
  "cross-origin-resource-policy",
];

/** Fields by which a response lets pages of other sites read it (Fetch standard, 3.2). */
const OPENING = ["access-control-allow-origin", "access-control-allow-credentials"];

/** Fields of responses that are gone, or allow more than before. */
export function responseFieldChanges(was: WayIn, is: WayIn): readonly ReviewChange[] {
  const [from, to] = [was, is].map(({ server, route, listener }) =>
    responseFieldRules(server, route, listener.protocol),
  ) as [ResponseFieldRules, ResponseFieldRules];
  const isTls = was.listener.protocol === "https" && is.listener.protocol === "https";
  const protective = PROTECTIVE.flatMap((name): ReviewChange[] => {
    // Browsers heed it over TLS only (RFC 6797, 8.1), and over http it is never sent.
    if (name === HSTS && !isTls) return [];
    const [old, now] = [said(from, name), said(to, name)];
    if (old === now || old === REMOVED) return [];
    if (now === REMOVED || now === PASSED)
      return [{ id: "field.removed", place: placeOf(is, name), ...both(name, old, now) }];
    if (old === PASSED || isStricter(name, from.get(name)!.value, to.get(name)!.value)) return [];
    return [{ id: "field.changed", place: placeOf(is, name), ...both(name, old, now) }];
  });
  const opening = OPENING.flatMap((name): ReviewChange[] => {
    const [old, now] = [said(from, name), said(to, name)];
    if (old === now || now === REMOVED || (now === PASSED && old !== REMOVED)) return [];
    return [{ id: "field.cross-origin", place: placeOf(is, name), ...both(name, old, now) }];
  });
  return [...protective, ...opening];
}

const HSTS = "strict-transport-security";
const [REMOVED, PASSED] = ["removed", "as the application sends it"];

const both = (name: string, old: string, now: string): Pick<ReviewChange, "old" | "new"> => ({
  old: `${name}: ${old}`,
  new: `${name}: ${now}`,
});

function said(rules: ResponseFieldRules, name: string): string {
  return rules.has(name) ? (rules.get(name)?.value ?? REMOVED) : PASSED;
}

/** Whether the new value allows less; for most fields no text tells. */
function isStricter(name: string, old: string, now: string): boolean {
  if (name === "x-frame-options") return now.toUpperCase() === "DENY";
  if (name !== HSTS) return false;
  const age = (value: string): number => Number(/max-age=(\d{1,12})/.exec(value)?.[1] ?? 0);
  return age(now) >= age(old) && (!old.includes("includeSubDomains") || now.includes("includeSubDomains"));
}

/** The rule of the route, or else of its virtual server. */
function placeOf({ place, server, route }: WayIn, name: string): string {
  const ofServer = place.slice(0, place.indexOf(".routes["));
  const { set, remove } = route.responseHeaders;
  if ([...Object.keys(set), ...remove].some((one) => one.toLowerCase() === name))
    return `${place}.responseHeaders`;
  return `${ofServer}.${name === HSTS && server.hsts !== undefined ? "hsts" : "responseHeaders"}`;
}
